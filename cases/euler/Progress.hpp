/// @file Progress.hpp
/// @brief Shows the progress of a run and the time left.
#pragma once

#include "Gas.hpp"

#include <iosfwd>
#include <limits>
#include <string>

namespace Euler {

/// Line: one line that is rewritten, for terminals. Lines: a line every few seconds, for files. Auto: Line if standard
/// output is a terminal, also through mpiexec if it passes the terminal's width on (Open MPI does).
enum class ProgressStyle : unsigned char { Auto, Line, Lines, None };

/// The start of a run and its limits; the first one reached ends it.
struct ProgressGoal {
    index cells = 0; ///< cells of all ranks
    index firstStep = 0;
    index lastStep = 0;
    real begin = 0;
    real end = std::numeric_limits<real>::infinity(); ///< infinite: no time is shown
    real tolerance = 0;                               ///< tolerance of the residual, as a share of the first; 0: none
};

/// The state after a step.
struct ProgressNow {
    index step = 0;
    real time = 0;
    real residual = 0;  ///< residual of mass, as a share of the first
    double seconds = 0; ///< since the run began
    real cfl = 0;
    index krylovIterations = 0; ///< iterations of all steps; 0: not shown
};

/// Local; meant for rank 0.
class Progress {
  public:
    /// `out` may be null: nothing is shown.
    Progress(std::ostream *out, ProgressStyle style, const ProgressGoal &goal);
    Progress(const Progress &) = delete;
    Progress &operator=(const Progress &) = delete;
    /// Moves a terminal to the start of a line, for later output and errors.
    ~Progress();

    /// Call it after each step. Line is shown up to ten times a second, Lines every five seconds, both for the first
    /// and the last step.
    void operator()(const ProgressNow &now, bool last = false);

    /// Shows a message on its own line; nothing if it is empty.
    void say(const std::string &message);

    /// The line, without end. Public for tests.
    std::string text(const ProgressNow &now) const;

  private:
    std::ostream *out_;
    ProgressStyle style_;
    ProgressGoal goal_;
    double due_ = 0;
    bool open_ = false; ///< a rewritten line is on the terminal
};

/// "7 s", "2:05 min", "3:00:10 h". Local.
std::string durationOf(double seconds);

} // namespace Euler
