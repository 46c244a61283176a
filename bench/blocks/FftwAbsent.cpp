/// @file FftwAbsent.cpp
/// @brief Stands for FFTW in builds without it.
#include "SlabMethod.hpp"

namespace DNDS::Bench {

std::unique_ptr<SlabMethod> makeFftwTranspose(CommunicatorView, index) { return nullptr; }

} // namespace DNDS::Bench
