// A frame in C++ that is declared once and run many times, with the data of each run.
#include <paceline.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <vector>

struct world {
    std::vector<float> positions;
    std::size_t seen = 0;
    int frame = 0;
    int saves = 0;
};

int main() {
    pl::system jobs(2);
    auto frame = jobs.graph<world>("frame");
    float speed = 2.0f;

    auto physics = frame.nested("physics", [&] {
        auto moved = frame.loop(
            "travel", [](world &w) { return w.positions.size(); },
            [speed](world &w, std::size_t begin, std::size_t end) {
                for (auto i = begin; i < end; i++)
                    w.positions[i] += speed;
            });
        frame.job(
            "cull",
            [](world &w) {
                w.seen = 0;
                for (float x : w.positions)
                    w.seen += x < 5.0f;
            },
            pl::after(moved));
    });
    auto second = frame.condition("second frame", [](world &w) { return w.frame % 2 == 0; });
    frame.job("save", [](world &w) { w.saves++; }, pl::after(physics).only_if(second));
    frame.sync("simulated");
    auto draw = frame.job(
        "draw",
        [](pl::context &cx, world &w) {
            if (w.seen == 0)
                throw std::out_of_range("there is nothing to draw");
            (void)cx;
        },
        pl::node_options().on_main());
    frame.job("present", [] { std::printf("presented\n"); }, pl::after(draw, second).in_front());
    frame.build();
    std::printf("%s\n", frame.text().c_str());

    world w;
    w.positions.resize(1000);
    for (w.frame = 1; w.frame <= 3; w.frame++) {
        try {
            frame.run(w);
        } catch (const std::out_of_range &thrown) {
            std::printf("frame %d: %s\n", w.frame, thrown.what());
        }
        std::printf("%zu seen, %d saves\n", w.seen, w.saves);
        w.positions.resize(w.positions.size() / 2);
    }
    w.positions.assign(10, 0.0f);
    frame.start(w);
    frame.wait();
    std::printf("%zu seen, done: %d\n", w.seen, frame.is_done());

    // Of two frames in flight, the jobs of the one with the earlier deadline go first: a sound that has to be
    // mixed while a picture is drawn.
    auto mixing = jobs.graph("mixing");
    int mixed = 0;
    mixing.job("mix", [&mixed] { mixed++; });
    mixing.build();
    {
        auto picture = jobs.frame("picture", std::chrono::milliseconds(16));
        auto sound = jobs.frame("sound", std::chrono::milliseconds(5));
        frame.start_in(picture, w);
        mixing.start_in(sound);
        mixing.wait();
        frame.wait();
    }
    std::printf("%zu seen, %d mixed\n", w.seen, mixed);

    // A description says more than a number of workers: never more than one of two for streaming, and that a
    // scheduler in user space, where there is one, is told what threads wait for.
    pl_system_desc told{};
    told.workers = 2;
    told.shares[0] = 25;
    told.shares_at_most[0] = 1;
    told.hints = 1;
    pl::system streaming(told);
    streaming.wait(streaming.schedule("stream", [] {}, pl::options().lane(PL_LANE_SHARE_1)));

    // A graph without data: its bodies have what they capture, of any size.
    auto plain = jobs.graph("plain");
    std::array<int, 100> numbers{};
    auto filled = plain.loop("fill", numbers.size(), [&](std::size_t begin, std::size_t end) {
        for (auto i = begin; i < end; i++)
            numbers[i] = static_cast<int>(i);
    });
    int sum = 0;
    auto copy = std::vector<int>{1, 2, 3};
    auto added = plain.job(
        "add",
        [&sum, &numbers, copy] {
            sum = static_cast<int>(copy.size());
            for (int number : numbers)
                sum += number;
        },
        pl::after(filled));
    plain.build();
    plain.run();
    std::printf("sum: %d\n", sum);

    try {
        plain.add_dependency(filled, added);
    } catch (const pl::error &refused) {
        std::printf("%s: %s\n", pl_status_name(refused.status()), refused.what());
    }
    auto circle = jobs.graph("circle");
    auto hen = circle.job("hen", [] {});
    auto egg = circle.job("egg", [] {}, pl::after(hen));
    circle.add_dependency(hen, egg);
    try {
        circle.build();
    } catch (const pl::error &refused) {
        std::printf("%s: %s\n", pl_status_name(refused.status()), refused.what());
    }

    // One that is dropped while it runs waits first.
    {
        auto last = jobs.graph("last");
        last.job("late", [&sum] { sum = 1; });
        last.build();
        last.start();
    }
    std::printf("sum: %d\n", sum);
    return 0;
}
