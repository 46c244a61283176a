/// @file HdfDataset.hpp
/// @brief Boxes of HDF5 datasets of any name.
#pragma once

#include "DNDS/GridFile/Slab.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <span>
#include <string>
#include <vector>

namespace DNDS {

/// The shape of a dataset. Collective: rank 0 reads it. @throws as `readHdfDataset`.
std::vector<index> hdfDatasetShape(CommunicatorView comm, const std::string &path, const std::string &dataset);

/// Reads this rank's boxes of a dataset of integers or floating-point numbers; HDF5 converts them to the memory type.
/// Collective; ranks read independently.
/// @throws on all ranks: ArgumentError for an unknown dataset, with a list of the known ones; LayoutError for boxes
/// outside it and data that are no numbers; DataError if the file cannot be read and for values that memory's type
/// cannot hold (integers may be rounded to floating-point numbers); NotBuiltError without HDF5.
void readHdfDataset(CommunicatorView comm, const std::string &path, const std::string &dataset,
                    std::span<const Slab> slabs);

/// Writes this rank's boxes as a dataset and creates the groups in its name. Creates the file or, with `append`, adds a
/// dataset to it. Collective. @throws on all ranks: LayoutError, DataError, NotBuiltError.
void writeHdfDataset(CommunicatorView comm, const std::string &path, const std::string &dataset,
                     const std::vector<index> &shape, ElementKind kind, std::span<const WrittenSlab> slabs,
                     bool append = false);

} // namespace DNDS
