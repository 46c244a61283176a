/// @file FindContext.hpp
/// @brief The context of a communicator for those who must not make it, which is collective.
#pragma once

#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <memory>

namespace DNDS {

/// As `CommunicatorContext::of` where it was made already; null elsewhere. Local, on any thread.
std::shared_ptr<CommunicatorContext> findContext(CommunicatorView comm);

} // namespace DNDS
