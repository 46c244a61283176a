/// @file DndsPull.hpp
/// @brief The library's pulls as contestants.
#pragma once

#include "PullMethod.hpp"

#include "DNDS/Exchange/Exchange.hpp"

#include <memory>

namespace DNDS::Bench {

/// One field whose owned rows all contestants read, so that they compete for the same cache lines.
class Field {
  public:
    /// Collective.
    Field(CommunicatorView comm, const Problem &problem, int width);
    Field(const Field &) = delete;
    Field &operator=(const Field &) = delete;
    ~Field();

    /// The owned rows: [owned x width].
    double *father();
    /// A pull into a son of its own by one transport, called like it; with a line on what was chosen. Collective.
    std::unique_ptr<PullMethod> bind(TransportKind kind);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace DNDS::Bench
