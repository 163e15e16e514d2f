// A request: one line `COMMAND KEY=NUMBER …`. What is wrong with it is said in one line.

#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>

/// The bench and the runner do not understand each other: the runner says so and ends.
struct BadRequest : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Request {
public:
    explicit Request(const std::string &line);

    const std::string &command() const {
        return command_;
    }

    /// The number of this key, within these bounds. Each key is to be taken once.
    std::uint64_t take(const std::string &key, std::uint64_t low, std::uint64_t high);

    /// The number of threads that may run tasks.
    int threads() {
        return static_cast<int>(take("threads", 1, 256));
    }

    /// All keys were taken.
    void end() const;

private:
    std::string command_;
    std::map<std::string, std::uint64_t> numbers_;
};

/// A number without sign, and nothing else.
std::uint64_t number(const std::string &text);
