/// @file Checkpoints.hpp
/// @brief Checkpoints of fields and arrays.
#pragma once

#include <nanobind/nanobind.h>

namespace DNDS::Python {

/// The functions dnds.write_checkpoint and the class dnds.Checkpoint.
void bindCheckpoint(nanobind::module_ &module);

} // namespace DNDS::Python
