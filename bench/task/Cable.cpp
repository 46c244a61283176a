/// @file Cable.cpp
/// @brief A cable with latency between two network namespaces: packets that leave one arrive in the other after a given
/// time.
///
///     dnds_cable MICROSECONDS NAMESPACE NAMESPACE
///
/// Makes a device "cable" (tun) in both namespaces of `ip netns`; the caller gives them addresses. On SIGTERM it writes
/// how long packets took. For kernels without netem. It sleeps between packets, so that it leaves the cores to the
/// ranks, and runs before them when a packet is due (SCHED_FIFO, where that is allowed).
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

struct Packet {
    Clock::time_point read, due;
    int to; ///< descriptor of the other end
    std::vector<char> bytes;
};

int require(int result, const std::string &what) {
    if (result < 0)
        throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
    return result;
}

/// The end of the cable in a namespace: a descriptor that packets are read from and written to.
int openEnd(const std::string &name) {
    const std::string path = "/run/netns/" + name;
    const int space = require(open(path.c_str(), O_RDONLY | O_CLOEXEC), path);
    require(setns(space, CLONE_NEWNET), "setns to " + name);
    close(space);
    const int end = require(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC), "/dev/net/tun");
    ifreq request{};
    std::strcpy(request.ifr_name, "cable");
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    require(ioctl(end, TUNSETIFF, &request), "TUNSETIFF in " + name);
    return end;
}

volatile std::sig_atomic_t stopped = 0;

class Cable {
  public:
    Cable(nanoseconds delay, int first, int second) : delay_(delay), ends_{first, second}, buffer_(1 << 16) {}

    /// Forwards until SIGTERM, which arrives only while it sleeps.
    void run(const sigset_t &whileAsleep) {
        while (stopped == 0) {
            sleep(whileAsleep);
            take(ends_[0], ends_[1]);
            take(ends_[1], ends_[0]);
            deliver();
        }
    }
    std::string report() {
        if (took_.empty())
            return "no packets";
        std::ranges::sort(took_);
        const auto share = [this](double part) {
            return took_[static_cast<std::size_t>(part * static_cast<double>(took_.size() - 1))];
        };
        rusage used{};
        getrusage(RUSAGE_SELF, &used);
        const auto micro = [](const timeval &time) {
            return 1e6 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec);
        };
        return fmt::format(
            "{} packets, in the cable for {:.1f} us (median; 90 % within {:.1f}), {:.1f} us of a core each",
            took_.size(), share(0.5), share(0.9),
            (micro(used.ru_utime) + micro(used.ru_stime)) / static_cast<double>(took_.size()));
    }

  private:
    void sleep(const sigset_t &whileAsleep) {
        pollfd waited[2] = {{ends_[0], POLLIN, 0}, {ends_[1], POLLIN, 0}};
        timespec time{};
        if (!queue_.empty()) {
            const nanoseconds left = std::max(nanoseconds(0), nanoseconds(queue_.front().due - Clock::now()));
            time = {left.count() / 1'000'000'000, left.count() % 1'000'000'000};
        }
        ppoll(waited, 2, queue_.empty() ? nullptr : &time, &whileAsleep);
    }
    void take(int from, int to) {
        for (ssize_t size = 0; (size = read(from, buffer_.data(), buffer_.size())) > 0;) {
            const auto now = Clock::now();
            queue_.push_back({now, now + delay_, to, {buffer_.begin(), buffer_.begin() + size}});
        }
    }
    void deliver() {
        for (; !queue_.empty() && queue_.front().due <= Clock::now(); queue_.pop_front()) {
            const Packet &packet = queue_.front();
            // A packet that the other end cannot take is lost; TCP sends it again.
            [[maybe_unused]] const ssize_t written = write(packet.to, packet.bytes.data(), packet.bytes.size());
            took_.push_back(std::chrono::duration<float, std::micro>(Clock::now() - packet.read).count());
        }
    }

    nanoseconds delay_;
    int ends_[2];
    std::vector<char> buffer_;
    std::deque<Packet> queue_; ///< in order of `due`: all packets wait equally long
    std::vector<float> took_;  ///< microseconds of all packets, with the delivery to the other end
};

void forward(const char *microseconds, const char *first, const char *second) {
    const nanoseconds delay(std::llround(1000 * std::stod(microseconds)));
    Cable cable(delay, openEnd(first), openEnd(second));
    prctl(PR_SET_TIMERSLACK, 1UL);
    const sched_param priority{.sched_priority = 1};
    sched_setscheduler(0, SCHED_FIFO, &priority);
    std::signal(SIGTERM, [](int) { stopped = 1; });
    sigset_t term, before;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, &before);
    cable.run(before);
    fmt::print("cable of {} us: {}\n", microseconds, cable.report());
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 4) {
        std::fputs("dnds_cable MICROSECONDS NAMESPACE NAMESPACE\n", stderr);
        return 2;
    }
    try {
        forward(argv[1], argv[2], argv[3]);
    } catch (const std::exception &error) {
        fmt::print(stderr, "dnds_cable: {}\n", error.what());
        return 1;
    }
    return 0;
}
