/// @file Mps.hpp
/// @brief NVIDIA's Multi-Process Service, which runs kernels of several processes beside each other on one GPU.
#pragma once

#include <string>

namespace DNDS::Device {

/// Whether a control daemon answers in `folder` (`mpsFolder()`): whether anybody listens to the socket or pipe
/// `control` there. Nothing is sent. For drivers that do not say whether they use it. Local.
bool mpsAnswers(const std::string &folder);

} // namespace DNDS::Device
