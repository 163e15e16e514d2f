#include "request.hpp"

#include <charconv>
#include <sstream>

std::uint64_t number(const std::string &text) {
    std::uint64_t value = 0;
    const char *end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, value);
    if (text.empty() || result.ec != std::errc() || result.ptr != end) {
        throw BadRequest("\"" + text + "\" is no number");
    }
    return value;
}

Request::Request(const std::string &line) {
    std::istringstream words(line);
    if (!(words >> command_)) {
        throw BadRequest("an empty line: give a command");
    }
    for (std::string word; words >> word;) {
        const auto equals = word.find('=');
        if (equals == std::string::npos) {
            throw BadRequest(command_ + ": \"" + word + "\" is not KEY=NUMBER");
        }
        const auto key = word.substr(0, equals);
        if (!numbers_.emplace(key, number(word.substr(equals + 1))).second) {
            throw BadRequest(command_ + ": " + key + " is given twice");
        }
    }
}

std::uint64_t Request::take(const std::string &key, std::uint64_t low, std::uint64_t high) {
    const auto found = numbers_.find(key);
    if (found == numbers_.end()) {
        throw BadRequest(command_ + ": " + key + " is missing");
    }
    const auto value = found->second;
    numbers_.erase(found);
    if (value < low || value > high) {
        throw BadRequest(command_ + ": " + key + "=" + std::to_string(value) + " is not in " +
                         std::to_string(low) + ".." + std::to_string(high));
    }
    return value;
}

void Request::end() const {
    if (!numbers_.empty()) {
        throw BadRequest(command_ + ": it has no " + numbers_.begin()->first);
    }
}
