// What dnds-mesh is doing: on a terminal, or in a log.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <fmt/format.h>

#include <ostream>
#include <string>
#include <string_view>

/// Rank 0 shows the current step and the elapsed time.
class Progress {
  public:
    enum class Style {
        None,
        Line, ///< one line that changes, for a terminal
        Lines ///< a line for each step that begins after some seconds, for a log: short runs write nothing
    };

    Progress(DNDS::CommunicatorView comm, std::ostream &err, Style style)
        : err_(err), style_(comm.rank() == 0 ? style : Style::None), start_(MPI_Wtime()) {}
    Progress(const Progress &) = delete;
    Progress &operator=(const Progress &) = delete;
    ~Progress() {
        if (style_ == Style::Line)
            err_ << "\r\033[K" << std::flush;
    }
    void operator()(std::string_view step) {
        const double seconds = MPI_Wtime() - start_;
        if (style_ == Style::Line)
            err_ << fmt::format("\r\033[K{:6.1f} s  {}", seconds, step) << std::flush;
        if (style_ == Style::Lines && seconds > quietSeconds)
            err_ << fmt::format("{:6.1f} s  {}: done; {}\n", seconds, last_, step) << std::flush;
        last_ = step;
    }

  private:
    static constexpr double quietSeconds = 2;

    std::ostream &err_;
    Style style_;
    double start_;
    std::string last_;
};
