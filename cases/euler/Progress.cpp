#include "Progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include <sys/ioctl.h>
#include <unistd.h>

namespace Euler {

namespace {

/// The width of the terminal of standard output; 0 without one. Open MPI gives programs a terminal even if its own
/// output goes to a file, but one without columns.
int terminalColumns() {
    winsize size{};
    if (::isatty(STDOUT_FILENO) != 1 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return 0;
    return size.ws_col;
}

/// The fraction of the way from `begin` to `end`.
double shareOf(double begin, double now, double end) { return end > begin ? (now - begin) / (end - begin) : 0; }

/// The completed fraction of the run, by the limit reached first.
double shareDone(const ProgressGoal &goal, const ProgressNow &now) {
    const auto step = [](index number) { return static_cast<double>(number); };
    double share = shareOf(step(goal.firstStep), step(now.step), step(goal.lastStep));
    if (std::isfinite(goal.end))
        share = std::max(share, shareOf(goal.begin, now.time, goal.end));
    if (goal.tolerance > 0 && now.residual > 0)
        share = std::max(share, std::log(now.residual) / std::log(goal.tolerance));
    return std::clamp(share, 0.0, 1.0);
}

} // namespace

std::string durationOf(double seconds) {
    const auto whole = static_cast<long long>(std::llround(std::max(0.0, seconds)));
    if (whole < 60)
        return fmt::format("{} s", whole);
    if (whole < 3600)
        return fmt::format("{}:{:02} min", whole / 60, whole % 60);
    return fmt::format("{}:{:02}:{:02} h", whole / 3600, whole / 60 % 60, whole % 60);
}

Progress::Progress(std::ostream *out, ProgressStyle style, const ProgressGoal &goal)
    : out_(out), style_(style), goal_(goal) {
    if (style_ == ProgressStyle::Auto)
        style_ = terminalColumns() > 0 ? ProgressStyle::Line : ProgressStyle::Lines;
}

Progress::~Progress() {
    if (open_)
        *out_ << '\n' << std::flush;
}

std::string Progress::text(const ProgressNow &now) const {
    std::string line = fmt::format("step {}", now.step);
    if (goal_.lastStep < std::numeric_limits<int>::max())
        line += fmt::format("/{}", goal_.lastStep);
    if (std::isfinite(goal_.end))
        line += fmt::format("  time {:.3g}/{:g}", now.time, goal_.end);
    line += fmt::format("  residual {:.1e} of first  CFL {:.4g}", now.residual, now.cfl);
    if (now.krylovIterations > 0)
        line += fmt::format("  {} Krylov iterations", now.krylovIterations);
    if (now.seconds > 0)
        line += fmt::format("  {:.2f} Mcells/s",
                            1e-6 * static_cast<double>(goal_.cells * (now.step - goal_.firstStep)) / now.seconds);
    const double done = shareDone(goal_, now);
    if (done > 0)
        line += fmt::format("  {} left", durationOf(now.seconds * (1 - done) / done));
    return line;
}

void Progress::operator()(const ProgressNow &now, bool last) {
    if (out_ == nullptr || style_ == ProgressStyle::None || (now.seconds < due_ && !last))
        return;
    if (style_ == ProgressStyle::Lines) {
        *out_ << text(now) << '\n' << std::flush;
        due_ = now.seconds + 5;
        return;
    }
    std::string line = text(now);
    const int columns = terminalColumns();
    if (columns > 0 && line.size() >= static_cast<std::size_t>(columns)) // a line that wraps cannot be rewritten
        line.resize(static_cast<std::size_t>(columns) - 1);
    *out_ << "\r\033[K" << line << std::flush;
    open_ = true;
    due_ = now.seconds + 0.1;
    if (last) {
        *out_ << '\n' << std::flush;
        open_ = false;
    }
}

void Progress::say(const std::string &message) {
    if (out_ == nullptr || message.empty())
        return;
    *out_ << (open_ ? "\n" : "") << message << std::flush;
    open_ = false;
}

} // namespace Euler
