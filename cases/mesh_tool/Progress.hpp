// What dnds-mesh is doing, on a terminal.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"

#include <fmt/format.h>

#include <ostream>
#include <string_view>

/// Shows the current step and the elapsed time on a terminal.
class Progress {
  public:
    Progress(DNDS::CommunicatorView comm, std::ostream &err, bool shown)
        : err_(err), shown_(shown && comm.rank() == 0), start_(MPI_Wtime()) {}
    Progress(const Progress &) = delete;
    Progress &operator=(const Progress &) = delete;
    ~Progress() {
        if (shown_)
            err_ << "\r\033[K" << std::flush;
    }
    void operator()(std::string_view step) const {
        if (shown_)
            err_ << fmt::format("\r\033[K{:6.1f} s  {}", MPI_Wtime() - start_, step) << std::flush;
    }

  private:
    std::ostream &err_;
    bool shown_;
    double start_;
};
