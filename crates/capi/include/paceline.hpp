// Paceline, a job system for programs with deadlines, for C++17 and later. Only a header, over paceline.h.
//
//     pl::system jobs;
//     auto step = jobs.schedule("step", [&] { world.step(); });
//     auto draw = jobs.schedule("draw", [&] { world.draw(); }, pl::after(step));
//     auto sum  = jobs.run("sum", [&] { return world.sum(); }, pl::after(step));
//     jobs.parallel_for("fill", n, [&](std::size_t begin, std::size_t end) { ... });
//     jobs.wait(draw);
//     int total = jobs.wait(sum);
//
//     auto frame = jobs.graph<world>("frame"); // Declared once, run many times.
//     auto moved = frame.job("move", [](world &w) { w.move(); });
//     frame.job("draw", [](world &w) { w.draw(); }, pl::after(moved));
//     frame.build();
//     frame.run(w);
//
// A call that fails throws pl::error. What a body of `run` or `parallel_for` throws, the wait throws. What a
// body of `schedule` throws is the text of the pl::error that its wait throws. Jobs after one that has thrown
// are cancelled.
//
// A callable that can be copied byte by byte and has at most 40 bytes (a lambda with five references) lies in
// the job itself. Others are moved to the heap.

#ifndef PACELINE_HPP
#define PACELINE_HPP

#include "paceline.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__cpp_impl_coroutine)
#include <coroutine>
#endif

namespace pl {

/// As a default argument: where the caller stands. A compiler that cannot say has a null file.
#if defined(__GNUC__) || defined(__clang__) || (defined(_MSC_VER) && _MSC_VER >= 1926)
constexpr pl_site here(const char *file = __builtin_FILE(), std::uint32_t line = __builtin_LINE()) noexcept {
    return {file, line};
}
#else
constexpr pl_site here(const char *file = nullptr, std::uint32_t line = 0) noexcept { return {file, line}; }
#endif

/// A call that did not do what it was asked for: what() is a sentence, with the places in the program that have
/// made the jobs in it.
class error : public std::runtime_error {
public:
    error(pl_status status, const char *text, pl_site where = {nullptr, 0})
        : std::runtime_error(text), status_(status), where_(where) {}

    pl_status status() const noexcept { return status_; }
    /// The place of the call, if it was a wait. Its file may be null.
    pl_site where() const noexcept { return where_; }

private:
    pl_status status_;
    pl_site where_;
};

/// Throws if a call of paceline.h has failed.
inline void check(pl_status status, pl_site where = {nullptr, 0}) {
    if (status != PL_OK)
        throw error(status, pl_last_error(), where);
}

/// What a body may ask while it runs.
class context {
public:
    explicit context(pl_context *raw) noexcept : raw_(raw) {}

    /// The number of the thread, less than system::thread_slots(). No two threads have it at the same time.
    std::size_t worker() const noexcept { return pl_context_worker(raw_); }
    /// The job system, for calls from inside.
    pl_system *system() const noexcept { return pl_context_system(raw_); }
    pl_context *raw() const noexcept { return raw_; }
    /// A point in a long background job at which it makes way for more urgent jobs. Returns whether it has
    /// rested.
    bool checkpoint() {
        int rested = 0;
        check(pl_checkpoint(raw_, &rested));
        return rested != 0;
    }
    /// Calls what may block on a file, a lock or a device. Another worker has the core meanwhile. Throws what
    /// it throws.
    template <class F> void blocking(F &&blocks) {
        struct callee {
            F &blocks;
            std::exception_ptr thrown;
        } called{blocks, nullptr};
        auto run = [](void *data) {
            auto *to = static_cast<callee *>(data);
            try {
                to->blocks();
            } catch (...) {
                to->thrown = std::current_exception();
            }
        };
        check(pl_blocking(raw_, run, &called));
        if (called.thrown)
            std::rethrow_exception(called.thrown);
    }

private:
    pl_context *raw_;
};

namespace detail {
/// A number of C's that is given back when its owner ends, unless another one has taken it over.
template <class Number, pl_status (*give_back)(pl_system *, Number)> class owned {
public:
    owned(pl_system *of, Number made) noexcept : system(of), number(made) {}
    owned(owned &&other) noexcept : system(other.system), number(std::exchange(other.number, 0)) {}
    owned &operator=(owned &&other) noexcept {
        owned taken(std::move(other));
        std::swap(system, taken.system);
        std::swap(number, taken.number);
        return *this;
    }
    ~owned() {
        if (number != 0)
            give_back(system, number);
    }

    pl_system *system;
    Number number;
};

inline pl_status unpin(pl_system *system, pl_pin) { return pl_unpin_thread(system); }
} // namespace detail

/// What calls work off: pl::after(a).cancelled_by(token). Any thread may use it.
class token {
public:
    /// Jobs that have not begun do not begin. Those that run may ask.
    void cancel() { check(pl_token_cancel(owned_.system, owned_.number)); }
    bool is_cancelled() const {
        std::int32_t is = 0;
        check(pl_token_is_cancelled(owned_.system, owned_.number, &is));
        return is != 0;
    }
    /// One for a part of the work: it is cancelled with this one, or alone.
    token child() const {
        pl_token made = 0;
        check(pl_token_create(owned_.system, owned_.number, &made));
        return token(owned_.system, made);
    }
    pl_token number() const noexcept { return owned_.number; }

private:
    friend class system;
    token(pl_system *system, pl_token number) noexcept : owned_(system, number) {}

    detail::owned<pl_token, pl_token_destroy> owned_;
};

/// A thread that runs the jobs which are pinned to it, in its waits and in run_jobs(): pl::options()
/// .pinned_to(main_thread.pin()). It is destroyed on the thread that made it, and before the system. A call of
/// `on_ready` may still be going on then, on another thread: it owns what it uses, by a shared_ptr for example.
class pinned_thread {
public:
    /// Its name, for other threads.
    pl_pin pin() const noexcept { return owned_.number; }
    /// Runs the jobs that are ready, as many as there are at the call. Returns their number.
    std::size_t run_jobs() {
        std::size_t ran = 0;
        check(pl_run_pinned_jobs(owned_.system, &ran));
        return ran;
    }

private:
    friend class system;
    pinned_thread(pl_system *system, pl_pin number) noexcept : owned_(system, number) {}

    detail::owned<pl_pin, detail::unpin> owned_;
};

/// A job's number. It owns nothing: wait for the job or not.
class job {
public:
    job() noexcept = default;
    explicit job(pl_job number) noexcept : number_(number) {}

    pl_job number() const noexcept { return number_; }
    explicit operator bool() const noexcept { return number_ != 0; }
    friend bool operator==(job a, job b) noexcept { return a.number_ == b.number_; }
    friend bool operator!=(job a, job b) noexcept { return a.number_ != b.number_; }

private:
    pl_job number_ = 0;
};

namespace detail {

/// The bytes of data that lie in a job (pl_job_desc::data_size).
constexpr std::size_t inline_bytes = 40;

template <class F>
constexpr bool lies_in_job = std::is_trivially_copyable_v<F> && std::is_trivially_destructible_v<F> &&
                             sizeof(F) <= inline_bytes && alignof(F) <= 8;

/// Calls with the context if the callable wants it.
template <class F, class... Parts> decltype(auto) call(F &callable, pl_context *raw, Parts... parts) {
    if constexpr (std::is_invocable_v<F &, context &, Parts...>) {
        context cx(raw);
        return callable(cx, parts...);
    } else {
        static_assert(std::is_invocable_v<F &, Parts...>,
                      "the body takes nothing or a pl::context&, and in a loop two std::size_t after it; in a "
                      "loop, where several threads call it at once, it is not mutable");
        return callable(parts...);
    }
}

/// Runs a body, and turns what it throws into a failure of its job.
template <class Run> void guarded(pl_context *raw, Run run) noexcept {
    try {
        run();
    } catch (const std::exception &thrown) {
        pl_fail(raw, thrown.what());
    } catch (...) {
        pl_fail(raw, "an exception that is no std::exception");
    }
}

template <class F> void release(void *data) { delete static_cast<F *>(data); }

template <class F> void run_body(pl_context *raw, void *data) {
    guarded(raw, [&] { call(*static_cast<F *>(data), raw); });
}

template <class F> void run_loop(pl_context *raw, std::size_t begin, std::size_t end, void *data) {
    guarded(raw, [&] { call(*static_cast<const F *>(data), raw, begin, end); });
}

/// Puts a callable into a description: into the job, or to the heap. With the heap, `keep` owns it until the
/// library does.
template <class F, class Desc> void put(Desc &desc, F &callable, std::unique_ptr<F> &keep) {
    if constexpr (lies_in_job<F>) {
        desc.data = const_cast<void *>(static_cast<const void *>(std::addressof(callable)));
        desc.data_size = sizeof(F);
    } else {
        keep = std::make_unique<F>(std::move(callable));
        desc.data = keep.get();
        desc.release = release<F>;
    }
}

/// The first exception of several threads.
class first_exception {
public:
    void keep() noexcept {
        std::lock_guard<std::mutex> lock(mutex_);
        if (!thrown_)
            thrown_ = std::current_exception();
    }
    void rethrow() const {
        if (thrown_)
            std::rethrow_exception(thrown_);
    }
    /// Throws it, and forgets it.
    void rethrow_once() {
        std::exception_ptr thrown;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            thrown = std::exchange(thrown_, nullptr);
        }
        if (thrown)
            std::rethrow_exception(thrown);
    }

private:
    std::mutex mutex_;
    std::exception_ptr thrown_;
};

/// Where the result of a job comes.
template <class T> struct outcome {
    std::optional<T> value;
    std::exception_ptr thrown;
    bool has_ended_well = false;
};
template <> struct outcome<void> {
    std::exception_ptr thrown;
    bool has_ended_well = false;
};

/// A time in nanoseconds: none if it is past, the longest that there is if it is longer.
template <class Rep, class Period> std::uint64_t nanoseconds(std::chrono::duration<Rep, Period> time) {
    using most = std::chrono::duration<double, std::nano>;
    constexpr auto longest = std::chrono::nanoseconds::max();
    if (!(time > std::chrono::duration<Rep, Period>::zero()))
        return 0;
    if (std::chrono::duration_cast<most>(time) >= most(longest))
        return static_cast<std::uint64_t>(longest.count());
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

} // namespace detail

class frame;
class group;
template <class D = void> class graph;

/// What a job waits for, and how it runs: pl::after(a, b).background().
class options {
public:
    options() = default;

    options &after(job before) {
        after_.push_back(before.number());
        return *this;
    }
    template <class Jobs> options &after_all(const Jobs &jobs) {
        for (const auto &before : jobs)
            after(before);
        return *this;
    }
    /// Without a deadline: run when there is nothing else to do, and now and then when there is.
    options &background() {
        lane_ = PL_LANE_BACKGROUND;
        return *this;
    }
    /// One of the few jobs that a frame hangs on: run before all else.
    options &in_front() {
        lane_ = PL_LANE_FRAME;
        return *this;
    }
    /// In a lane with a share of the workers' time, PL_LANE_SHARE_1 or another one.
    options &lane(pl_lane which) {
        lane_ = which;
        return *this;
    }
    /// The frame that it belongs to: of several in flight, that with the earliest deadline goes first.
    options &in(const pl::frame &of);
    /// The group that it belongs to: waits of the group may run it.
    options &in(const pl::group &of);
    /// What can call it off before it begins.
    options &cancelled_by(const pl::token &by) {
        token_ = by.number();
        return *this;
    }
    /// The thread that alone runs it (pinned_thread::pin). A loop cannot be pinned.
    options &pinned_to(pl_pin thread) {
        pin_ = thread;
        return *this;
    }
    /// Wakes no worker: for threads that cannot pay for a system call.
    options &quiet() {
        quiet_ = 1;
        return *this;
    }
    /// The fewest items of a part of a loop, unless it has no more; 0 as many as suit the time that they take.
    options &grain(std::uint32_t items) {
        grain_ = items;
        return *this;
    }

private:
    friend class system;

    template <class Desc> void fill(Desc &desc, const char *name, const pl_site &at) const {
        desc.size = sizeof(Desc);
        desc.name = name;
        desc.site = &at;
        desc.after = after_.data();
        desc.after_count = after_.size();
        desc.lane = lane_;
        desc.quiet = quiet_;
        desc.token = token_;
        desc.frame = frame_;
        desc.group = group_;
        if constexpr (std::is_same_v<Desc, pl_job_desc>)
            desc.pin = pin_;
        else if (pin_ != 0)
            throw error(PL_INVALID, "a loop cannot be pinned to a thread: its parts are for all threads");
    }

    std::vector<pl_job> after_;
    pl_lane lane_ = PL_LANE_NORMAL;
    pl_token token_ = 0;
    pl_pin pin_ = 0;
    pl_frame frame_ = 0;
    pl_group group_ = 0;
    std::uint32_t quiet_ = 0;
    std::uint32_t grain_ = 0;
};

/// A node of a graph, of which it has the number.
class node {
public:
    node() noexcept = default;
    explicit node(pl_node number) noexcept : number_(number) {}

    pl_node number() const noexcept { return number_; }

private:
    pl_node number_ = 0;
};

/// A condition of a graph, on which other nodes can hang.
class condition {
public:
    explicit condition(pl_node number) noexcept : number_(number) {}

    operator node() const noexcept { return node(number_); }
    pl_node number() const noexcept { return number_; }

private:
    pl_node number_;
};

/// What a node of a graph comes after, and how it runs: pl::after(a, b).on_main().
class node_options {
public:
    node_options() = default;

    node_options &after(node before) {
        after_.push_back(before.number());
        return *this;
    }
    template <class Nodes> node_options &after_all(const Nodes &nodes) {
        for (const auto &before : nodes)
            after(before);
        return *this;
    }
    /// It runs only if this condition held in the same run, and all others that it was given. Otherwise it
    /// counts as over.
    node_options &only_if(condition holds) {
        only_if_.push_back(holds.number());
        return *this;
    }
    /// Without a deadline. The run ends only when it has.
    node_options &background() { return lane(PL_LANE_BACKGROUND); }
    /// Run before all else.
    node_options &in_front() { return lane(PL_LANE_FRAME); }
    node_options &lane(pl_lane which) {
        lane_ = which;
        return *this;
    }
    /// It is run by the thread that runs the graph, or that waits for the run.
    node_options &on_main() {
        on_main_ = 1;
        return *this;
    }
    /// The fewest items of a part of a loop, unless it has no more; 0 as many as suit the time that they take.
    node_options &grain(std::uint32_t items) {
        grain_ = items;
        return *this;
    }

private:
    template <class D> friend class graph;

    pl_node_desc described(const char *name, const pl_site &at) const {
        pl_node_desc desc{};
        desc.size = sizeof desc;
        desc.name = name;
        desc.site = &at;
        desc.after = after_.data();
        desc.after_count = after_.size();
        desc.only_if = only_if_.data();
        desc.only_if_count = only_if_.size();
        desc.lane = lane_;
        desc.on_main = on_main_;
        desc.grain = grain_;
        return desc;
    }

    std::vector<pl_node> after_;
    std::vector<pl_node> only_if_;
    pl_lane lane_ = PL_LANE_NORMAL;
    std::uint32_t on_main_ = 0;
    std::uint32_t grain_ = 0;
};

namespace detail {

template <class... Of>
constexpr bool are_nodes = sizeof...(Of) > 0 && (std::is_convertible_v<const Of &, node> && ...);

} // namespace detail

/// The job waits for these jobs. Of nodes: the node comes after these nodes.
template <class... Jobs> auto after(const Jobs &...jobs) {
    std::conditional_t<detail::are_nodes<Jobs...>, node_options, options> made;
    (made.after(jobs), ...);
    return made;
}

/// A job with a result, or with what it throws. Dropping it is fine: the job runs all the same.
template <class T> class result {
public:
    operator job() const noexcept { return job_; }
    pl_job number() const noexcept { return job_.number(); }

private:
    friend class system;
    friend class group;

    result(job of, std::shared_ptr<detail::outcome<T>> outcome) : job_(of), outcome_(std::move(outcome)) {}

    /// Throws what the job has thrown, or why a wait for it failed.
    void checked(pl_status status, const pl_site &at) const {
        // If the wait was refused the job may still run.
        bool is_over = status == PL_OK || status == PL_FAILED || status == PL_FORGOTTEN;
        if (is_over && outcome_->thrown)
            std::rethrow_exception(outcome_->thrown);
        check(status, at);
    }
    /// What came out, after a wait that ended so.
    T taken(pl_status status, const pl_site &at) const {
        checked(status, at);
        // It failed, or never ran, before so many others failed that this is forgotten.
        if (!outcome_->has_ended_well)
            throw error(PL_FORGOTTEN, "the job has no result: it failed or was cancelled long ago", at);
        if constexpr (!std::is_void_v<T>)
            return std::move(*outcome_->value);
    }

    job job_;
    std::shared_ptr<detail::outcome<T>> outcome_;
};

/// An event: a job that the program completes. One that goes away uncompleted cancels what waits for it.
class event {
public:
    operator job() const noexcept { return job(owned_.number); }
    /// Completes it, or counts it down by one. Any thread may call this.
    void complete() { check(pl_event_complete(owned_.system, owned_.number)); }

private:
    friend class system;
    event(pl_system *system, pl_job number) noexcept : owned_(system, number) {}

    detail::owned<pl_job, pl_event_abandon> owned_;
};

/// A frame with a deadline, which ends with the scope. It waits for nothing.
class frame {
public:
    pl_frame number() const noexcept { return owned_.number; }

    std::chrono::nanoseconds remaining() const {
        std::uint64_t left = 0;
        check(pl_frame_remaining(owned_.system, owned_.number, &left));
        return std::chrono::nanoseconds(left);
    }

private:
    friend class system;
    frame(pl_system *system, pl_frame number) noexcept : owned_(system, number) {}

    detail::owned<pl_frame, pl_frame_end> owned_;
};

inline options &options::in(const pl::frame &of) {
    frame_ = of.number();
    return *this;
}

/// Jobs that belong together: `jobs.schedule("solve", body, pl::options().in(physics))`. A wait of the group
/// may run all of its jobs, and no stranger's: for gangs, whose members wait for each other by means of their
/// own. Its end ends nothing: its jobs run on.
class group {
public:
    pl_group number() const noexcept { return owned_.number; }
    /// Waits for a job. Meanwhile the thread runs what the job needs, and jobs of the group.
    void wait(job of, pl_site at = here()) const {
        check(pl_group_wait(owned_.system, owned_.number, of.number()), at);
    }
    /// Waits for a result: throws what the job has thrown. A result comes out once.
    template <class T> T wait(result<T> of, pl_site at = here()) const {
        return of.taken(pl_group_wait(owned_.system, owned_.number, of.number()), at);
    }
    /// Waits for so long at most; false if the job has not ended then.
    template <class Rep, class Period>
    bool wait_for(job of, std::chrono::duration<Rep, Period> time, pl_site at = here()) const {
        pl_status status = wait_at_most(of, detail::nanoseconds(time));
        if (status == PL_TIMEOUT)
            return false;
        check(status, at);
        return true;
    }
    /// The same for a result: throws what the job has thrown. The result itself comes from `wait`.
    template <class T, class Rep, class Period>
    bool wait_for(const result<T> &of, std::chrono::duration<Rep, Period> time, pl_site at = here()) const {
        pl_status status = wait_at_most(of, detail::nanoseconds(time));
        if (status == PL_TIMEOUT)
            return false;
        of.checked(status, at);
        return true;
    }

private:
    pl_status wait_at_most(job of, std::uint64_t most) const {
        return pl_group_wait_timeout(owned_.system, owned_.number, of.number(), most);
    }

    friend class system;
    group(pl_system *system, pl_group number) noexcept : owned_(system, number) {}

    detail::owned<pl_group, pl_group_destroy> owned_;
};

inline options &options::in(const pl::group &of) {
    group_ = of.number();
    return *this;
}

namespace detail {

/// Calls with the data of the run and the context, as far as the callable wants them.
template <class D, class F, class... Parts>
decltype(auto) call_in_run(F &callable, pl_context *raw, Parts... parts) {
    if constexpr (std::is_void_v<D>) {
        return call(callable, raw, parts...);
    } else {
        D &data = *static_cast<D *>(pl_context_run_data(raw));
        if constexpr (std::is_invocable_v<F &, context &, D &, Parts...>) {
            context cx(raw);
            return callable(cx, data, parts...);
        } else if constexpr (std::is_invocable_v<F &, D &, Parts...>) {
            return callable(data, parts...);
        } else {
            return call(callable, raw, parts...);
        }
    }
}

/// A callable of a graph's node, and where what it throws comes.
template <class D, class F> struct node_body {
    first_exception *first;
    F callable;

    template <class Run> void guarded(pl_context *raw, Run run) noexcept {
        detail::guarded(raw, [&] {
            try {
                run();
            } catch (...) {
                first->keep();
                throw;
            }
        });
    }

    static void run(pl_context *raw, void *data) {
        auto *self = static_cast<node_body *>(data);
        self->guarded(raw, [&] { call_in_run<D>(self->callable, raw); });
    }
    static int holds(pl_context *raw, void *data) {
        auto *self = static_cast<node_body *>(data);
        bool holds = false;
        self->guarded(raw, [&] { holds = call_in_run<D>(self->callable, raw); });
        return holds;
    }
    static void part(pl_context *raw, std::size_t begin, std::size_t end, void *data) {
        auto *self = static_cast<node_body *>(data);
        self->guarded(raw, [&] { call_in_run<D>(std::as_const(self->callable.body), raw, begin, end); });
    }
    static std::size_t length(pl_context *raw, void *data) {
        auto *self = static_cast<node_body *>(data);
        std::size_t count = 0;
        self->guarded(raw, [&] { count = call_in_run<D>(self->callable.length, raw); });
        return count;
    }
};

/// The callables of a loop.
template <class L, class F> struct loop_callables {
    L length;
    F body;
};

} // namespace detail

/// A graph: declared once, built once, run many times with data of type `D`, or with none. Its bodies may take
/// a `pl::context&`, then a `D&`, each or neither. What a body throws first, run() or wait() throws. It ends
/// with the scope, and waits then for a run that was started.
template <class D> class graph {
public:
    graph(graph &&other) noexcept
        : system_(other.system_), number_(std::exchange(other.number_, 0)),
          first_(std::move(other.first_)) {}
    graph &operator=(graph &&other) noexcept {
        graph taken(std::move(other));
        std::swap(system_, taken.system_);
        std::swap(number_, taken.number_);
        std::swap(first_, taken.first_);
        return *this;
    }
    ~graph() {
        if (number_ == 0)
            return;
        if (pl_graph_destroy(system_, number_) != PL_BUSY)
            return;
        pl_graph_wait(system_, number_);
        if (pl_graph_destroy(system_, number_) == PL_BUSY)
            static_cast<void>(first_.release()); // It ends in one of its own bodies, which use this.
    }

    /// A job: `void(pl::context&, D&)` or less.
    template <class F>
    node job(const char *name, F body, const node_options &how = {}, pl_site at = here()) {
        using made = detail::node_body<D, F>;
        pl_node_desc desc = how.described(name, at);
        desc.body = made::run;
        return add(desc, made{first_.get(), std::move(body)});
    }
    /// A loop. `length` is a number, or says how many items there are in this run: `std::size_t(D&)`. The body
    /// gets parts: `void(pl::context&, D&, std::size_t begin, std::size_t end)`, on several threads at the same
    /// time.
    template <class L, class F>
    node loop(const char *name, L length, F body, const node_options &how = {},
              pl_site at = here()) {
        pl_node_desc desc = how.described(name, at);
        if constexpr (std::is_convertible_v<L, std::size_t>) {
            auto count = static_cast<std::size_t>(length);
            auto fixed = [count] { return count; };
            return add_loop(desc, std::move(fixed), std::move(body));
        } else {
            return add_loop(desc, std::move(length), std::move(body));
        }
    }
    /// A condition: `bool(pl::context&, D&)` or less. Nodes hang on it by node_options::only_if.
    template <class F>
    pl::condition condition(const char *name, F holds, const node_options &how = {},
                            pl_site at = here()) {
        using made = detail::node_body<D, F>;
        pl_node_desc desc = how.described(name, at);
        desc.condition = made::holds;
        return pl::condition(add(desc, made{first_.get(), std::move(holds)}).number());
    }
    /// What was added before it ends before what is added after it begins.
    node sync(const char *name) {
        pl_node made = 0;
        check(pl_graph_sync(system_, number_, name, &made));
        return node(made);
    }
    /// What `declare` adds is a nested graph: what comes after it comes after all of that.
    template <class F>
    node nested(const char *name, F declare, const node_options &how = {}, pl_site at = here()) {
        pl_node_desc desc = how.described(name, at);
        pl_node made = 0;
        check(pl_graph_begin_nested(system_, number_, &desc, &made));
        try {
            declare();
        } catch (...) {
            pl_graph_end_nested(system_, number_);
            throw;
        }
        check(pl_graph_end_nested(system_, number_));
        return node(made);
    }
    /// `later` comes after `before`, too.
    void add_dependency(node later, node before) {
        check(pl_graph_add_dependency(system_, number_, later.number(), before.number()));
    }
    /// Checks it, and makes what can be run. Throws a pl::error with PL_CYCLE if it has a circle.
    void build() { check(pl_graph_build(system_, number_)); }

    /// Runs it, with this thread, and returns when all is over.
    void run(pl_site at = here()) {
        static_assert(std::is_void_v<D>, "this graph runs with data: run(data)");
        checked(pl_graph_run(system_, number_, nullptr), at);
    }
    template <class T> void run(T &data, pl_site at = here()) {
        checked(pl_graph_run(system_, number_, address(data)), at);
    }
    /// Starts a run. The data live until wait() has returned.
    void start() {
        static_assert(std::is_void_v<D>, "this graph runs with data: start(data)");
        check(pl_graph_start(system_, number_, nullptr));
    }
    template <class T> void start(T &data) { check(pl_graph_start(system_, number_, address(data))); }
    /// As start(), in a frame: of several in flight, that with the earliest deadline goes first.
    void start_in(const pl::frame &of) {
        static_assert(std::is_void_v<D>, "this graph runs with data: start_in(frame, data)");
        check(pl_graph_start_in(system_, number_, of.number(), nullptr));
    }
    template <class T> void start_in(const pl::frame &of, T &data) {
        check(pl_graph_start_in(system_, number_, of.number(), address(data)));
    }
    /// Waits for the run that was started. Meanwhile the thread runs jobs of the graph.
    void wait(pl_site at = here()) { checked(pl_graph_wait(system_, number_), at); }
    bool is_done() const {
        std::int32_t done = 0;
        check(pl_graph_is_done(system_, number_, &done));
        return done != 0;
    }
    pl_graph number() const noexcept { return number_; }
    /// The nodes in an order in which they could run, a line each.
    std::string text() const {
        std::size_t needed = 0;
        check(pl_graph_text(system_, number_, nullptr, 0, &needed));
        std::string text(needed, '\0');
        check(pl_graph_text(system_, number_, text.data(), text.size(), nullptr));
        text.pop_back();
        return text;
    }

private:
    friend class system;
    graph(pl_system *system, pl_graph number)
        : system_(system), number_(number), first_(std::make_unique<detail::first_exception>()) {}

    template <class Body> node add(pl_node_desc &desc, Body body) {
        std::unique_ptr<Body> kept;
        detail::put(desc, body, kept);
        pl_node made = 0;
        static_cast<void>(kept.release()); // The call owns it now, also if it is refused.
        check(pl_graph_add(system_, number_, &desc, &made));
        return node(made);
    }
    template <class L, class F> node add_loop(pl_node_desc &desc, L length, F body) {
        using callables = detail::loop_callables<L, F>;
        using made = detail::node_body<D, callables>;
        desc.length = made::length;
        desc.loop_body = made::part;
        return add(desc, made{first_.get(), callables{std::move(length), std::move(body)}});
    }
    template <class T> static void *address(T &data) {
        D &as = data;
        return const_cast<void *>(static_cast<const void *>(std::addressof(as)));
    }
    void checked(pl_status status, pl_site at) {
        if (status == PL_FAILED)
            first_->rethrow_once();
        check(status, at);
    }

    pl_system *system_;
    pl_graph number_;
    std::unique_ptr<detail::first_exception> first_;
};

#if defined(__cpp_impl_coroutine)
/// What `co_await jobs.done(job)` waits with.
class awaited {
public:
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waits) {
        // A job after `of_` goes on with the coroutine. If `of_` fails that job never runs, and its end makes
        // another one, after nothing: the coroutine is not run in the middle of what fails. If that is refused,
        // too, the coroutine goes on there.
        pl_job after = of_.number();
        continuation::schedule(new continuation{waits, raw_, false}, &after, continuation::end);
    }
    void await_resume() const {
        pl_status status = pl_wait_timeout(raw_, of_.number(), 0);
        if (status == PL_TIMEOUT)
            throw error(status, "the job that is awaited could not be waited for");
        check(status);
    }

private:
    friend class system;
    awaited(pl_system *raw, job of) noexcept : raw_(raw), of_(of) {}

    struct continuation {
        std::coroutine_handle<> waits;
        pl_system *raw;
        bool has_run;

        static void schedule(continuation *self, const pl_job *after, pl_release end) {
            pl_job_desc desc{};
            desc.size = sizeof desc;
            desc.name = "co_await";
            desc.body = run;
            desc.data = self;
            desc.release = end;
            desc.after = after;
            desc.after_count = after != nullptr;
            // Nothing takes its number: the coroutine may be over by then, and what it keeps with it.
            pl_schedule(self->raw, &desc, nullptr);
        }
        static void run(pl_context *, void *data) {
            auto *self = static_cast<continuation *>(data);
            self->has_run = true;
            self->waits.resume();
        }
        static void end(void *data) {
            std::unique_ptr<continuation> self(static_cast<continuation *>(data));
            if (!self->has_run)
                schedule(self.release(), nullptr, last);
        }
        static void last(void *data) {
            std::unique_ptr<continuation> self(static_cast<continuation *>(data));
            if (!self->has_run)
                self->waits.resume();
        }
    };

    pl_system *raw_;
    job of_;
};
#endif

/// A job system. It ends with the scope: what is ready is run, the workers are joined.
class system {
public:
    system() { check(pl_system_create(nullptr, &raw_)); }
    explicit system(pl_system_desc desc) {
        desc.size = sizeof desc;
        check(pl_system_create(&desc, &raw_));
    }
    /// With exactly so many workers; 0 is none.
    explicit system(std::uint32_t workers) : system(with_workers(workers)) {}
    system(system &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    system &operator=(system &&other) noexcept {
        std::swap(raw_, other.raw_);
        return *this;
    }
    system(const system &) = delete;
    system &operator=(const system &) = delete;
    ~system() { pl_system_destroy(raw_); }

    pl_system *raw() const noexcept { return raw_; }

    /// Makes a job of a callable: `void()` or `void(pl::context&)`. It may run on any thread.
    template <class F>
    job schedule(const char *name, F body, const options &how = {}, pl_site at = here()) {
        pl_job_desc desc{};
        how.fill(desc, name, at);
        desc.body = detail::run_body<F>;
        std::unique_ptr<F> kept;
        detail::put(desc, body, kept);
        pl_job made = 0;
        kept.release(); // The call owns it now, also if it is refused.
        check(pl_schedule(raw_, &desc, &made));
        return job(made);
    }

    /// Makes a job with a result. Two allocations: what comes out, and the body, which shares it.
    template <class F>
    auto run(const char *name, F body, const options &how = {}, pl_site at = here()) {
        using T = decltype(detail::call(body, static_cast<pl_context *>(nullptr)));
        auto outcome = std::make_shared<detail::outcome<T>>();
        auto store = [outcome, body = std::move(body)](context &cx) mutable {
            try {
                if constexpr (std::is_void_v<T>)
                    detail::call(body, cx.raw());
                else
                    outcome->value.emplace(detail::call(body, cx.raw()));
                outcome->has_ended_well = true;
            } catch (...) {
                outcome->thrown = std::current_exception();
                throw;
            }
        };
        return result<T>(schedule(name, std::move(store), how, at), std::move(outcome));
    }

    /// Makes a loop over 0 .. count a job. The body gets parts: `void(std::size_t begin, std::size_t end)`,
    /// with a `pl::context&` before them if it wants. It runs on several threads at the same time.
    template <class F>
    job schedule_for(const char *name, std::size_t count, F body, const options &how = {},
                     pl_site at = here()) {
        pl_loop_desc desc{};
        how.fill(desc, name, at);
        desc.body = detail::run_loop<F>;
        desc.count = count;
        desc.grain = how.grain_;
        std::unique_ptr<F> kept;
        detail::put(desc, body, kept);
        pl_job made = 0;
        kept.release(); // The call owns it now, also if it is refused.
        check(pl_schedule_for(raw_, &desc, &made));
        return job(made);
    }

    /// Runs a loop now, with the calling thread, and throws what its body throws first.
    template <class F>
    void parallel_for(const char *name, std::size_t count, const F &body, std::uint32_t grain = 0,
                      pl_site at = here()) {
        detail::first_exception first;
        auto part = [&](context &cx, std::size_t begin, std::size_t end) {
            try {
                detail::call(body, cx.raw(), begin, end);
            } catch (...) {
                first.keep();
                throw;
            }
        };
        pl_loop_desc desc{};
        desc.size = sizeof desc;
        desc.name = name;
        desc.body = detail::run_loop<decltype(part)>;
        desc.data = &part;
        desc.count = count;
        desc.grain = grain;
        desc.site = &at;
        pl_status status = pl_parallel_for(raw_, &desc);
        first.rethrow();
        check(status, at);
    }

    /// A job that ends when all these have ended.
    template <class Jobs> job combine(const Jobs &jobs) {
        std::vector<pl_job> numbers;
        for (const auto &one : jobs)
            numbers.push_back(static_cast<job>(one).number());
        pl_job made = 0;
        check(pl_combine(raw_, numbers.data(), numbers.size(), &made));
        return job(made);
    }
    job combine(std::initializer_list<job> jobs) { return combine<std::initializer_list<job>>(jobs); }

    /// `waits`, which has not started, waits for `before`, too.
    void add_dependency(job waits, job before) {
        check(pl_add_dependency(raw_, waits.number(), before.number()));
    }

    /// Waits for a job. Meanwhile the thread runs what the job needs, and nothing else.
    void wait(job of, pl_site at = here()) { check(pl_wait(raw_, of.number()), at); }
    /// Waits for a result: throws what the job has thrown. A result comes out once.
    template <class T> T wait(result<T> of, pl_site at = here()) {
        return of.taken(pl_wait(raw_, of.number()), at);
    }
    /// Waits for so long at most; false if the job has not ended then.
    template <class Rep, class Period>
    bool wait_for(job of, std::chrono::duration<Rep, Period> time, pl_site at = here()) {
        pl_status status = pl_wait_timeout(raw_, of.number(), detail::nanoseconds(time));
        if (status == PL_TIMEOUT)
            return false;
        check(status, at);
        return true;
    }
    /// The same for a result: throws what the job has thrown. The result itself comes from `wait`.
    template <class T, class Rep, class Period>
    bool wait_for(const result<T> &of, std::chrono::duration<Rep, Period> time, pl_site at = here()) {
        pl_status status = pl_wait_timeout(raw_, of.number(), detail::nanoseconds(time));
        if (status == PL_TIMEOUT)
            return false;
        of.checked(status, at);
        return true;
    }
    bool is_done(job of) const {
        std::int32_t done = 0;
        check(pl_is_done(raw_, of.number(), &done));
        return done != 0;
    }

    /// An event that is complete after `count` completions.
    pl::event event(const char *name, std::size_t count = 1) {
        pl_job made = 0;
        check(pl_event_create(raw_, name, count, &made));
        return pl::event(raw_, made);
    }
    /// A group of jobs.
    pl::group group(const char *name) {
        pl_group made = 0;
        check(pl_group_create(raw_, name, &made));
        return pl::group(raw_, made);
    }
    /// Whether it pays to have workers run jobs of groups that wait for each other: not while other programs take
    /// the workers' CPUs in the middle of them. If not, do their work at once instead of making them.
    bool groups_are_worth_sharing() const {
        std::int32_t are_worth = 1;
        check(pl_groups_are_worth_sharing(raw_, &are_worth));
        return are_worth != 0;
    }
    /// A graph that runs with data of this type, or with none.
    template <class D = void> pl::graph<D> graph(const char *name) {
        pl_graph made = 0;
        check(pl_graph_create(raw_, name, &made));
        return pl::graph<D>(raw_, made);
    }
    /// A token that can call jobs off.
    pl::token token() {
        pl_token made = 0;
        check(pl_token_create(raw_, 0, &made));
        return pl::token(raw_, made);
    }
    /// Has the calling thread run jobs that are pinned to it.
    pinned_thread pin_thread() {
        pl_pin made = 0;
        check(pl_pin_thread(raw_, nullptr, &made));
        return pinned_thread(raw_, made);
    }
    /// The same. `on_ready` is called, on any thread, whenever one of them becomes ready; it must not throw.
    template <class F> pinned_thread pin_thread(F on_ready) {
        pl_pin_desc desc = {};
        desc.size = sizeof desc;
        desc.on_ready = [](void *data) { (*static_cast<F *>(data))(); };
        desc.data = new F(std::move(on_ready));
        desc.release = [](void *data) { delete static_cast<F *>(data); };
        pl_pin made = 0;
        check(pl_pin_thread(raw_, &desc, &made));
        return pinned_thread(raw_, made);
    }
    template <class Rep, class Period>
    pl::frame frame(const char *name, std::chrono::duration<Rep, Period> budget) {
        pl_frame made = 0;
        check(pl_frame_begin(raw_, name, detail::nanoseconds(budget), &made));
        return pl::frame(raw_, made);
    }

    void flush() { check(pl_flush(raw_)); }
    bool poll() {
        std::int32_t ran = 0;
        check(pl_poll(raw_, &ran));
        return ran != 0;
    }
    std::size_t workers() const {
        std::size_t count = 0;
        check(pl_workers(raw_, &count));
        return count;
    }
    std::size_t thread_slots() const {
        std::size_t count = 0;
        check(pl_thread_slots(raw_, &count));
        return count;
    }
    std::string explain() const { return text(pl_explain); }
    std::string report() const { return text(pl_report); }

#if defined(__cpp_impl_coroutine)
    /// `co_await jobs.done(job)`: goes on, on a thread that runs jobs, when the job has ended; throws if it
    /// did not end well. If there is no room for one more job it goes on at once, and throws PL_TIMEOUT: the
    /// job may still run then.
    awaited done(job of) { return awaited(raw_, of); }
#endif

private:
    static pl_system_desc with_workers(std::uint32_t workers) {
        pl_system_desc desc{};
        desc.workers = workers;
        desc.no_workers = workers == 0;
        return desc;
    }

    std::string text(pl_status (*ask)(pl_system *, char *, std::size_t, std::size_t *)) const {
        std::string buffer(4096, '\0');
        for (;;) {
            std::size_t needed = 0;
            check(ask(raw_, buffer.data(), buffer.size(), &needed));
            bool fits = needed <= buffer.size();
            buffer.resize(fits ? needed - 1 : needed + 256); // A report may have grown when asked again.
            if (fits)
                return buffer;
        }
    }

    pl_system *raw_ = nullptr;
};

} // namespace pl

#endif
