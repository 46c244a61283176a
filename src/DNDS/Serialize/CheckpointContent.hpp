/// @file CheckpointContent.hpp
/// @brief The contents of a checkpoint as plain data.
#pragma once

#include "DNDS/Base/ElementKind.hpp"
#include "DNDS/Base/Types.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace DNDS {

/// The position of a dataset's bytes and of the checksums of its blocks in the file.
struct CheckpointPlace {
    index values = 0;    ///< bytes from the start of the file
    index checksums = 0; ///< the same; one CRC-32 of 4 bytes per block
};

/// An array in a checkpoint. Rows are in the order of their ids, in blocks of `blockRows` rows; the last one may have
/// fewer. Each block of each dataset has a checksum.
struct CheckpointArray {
    std::string name;
    ElementKind kind = ElementKind::Opaque;
    index elementBytes = 0;
    bool ragged = false; ///< rows differ in size: the file has offsets
    bool listed = false; ///< ids are not 0, 1, ...: the file has a list of them
    index width = 0;     ///< elements of a row that is not ragged
    index rows = 0;      ///< number of rows of all ranks
    index elements = 0;  ///< number of elements of all rows
    index blockRows = 1;
    CheckpointPlace values;  ///< elements, row after row
    CheckpointPlace offsets; ///< ragged: [rows + 1] the element at which each row starts
    CheckpointPlace ids;     ///< listed: [rows]

    /// The number of blocks, the shorter last one included.
    index blocks() const { return (rows + blockRows - 1) / blockRows; }
    /// For example "float64[8] x 5, 1000 rows in 2 blocks".
    std::string description() const;
};

/// One number is a list of one.
using CheckpointValue = std::variant<std::vector<index>, std::vector<real>, std::string>;

/// The contents of a checkpoint without the rows themselves.
struct CheckpointContent {
    /// The fingerprint of the mesh that the ids belong to; empty if the file has none.
    std::optional<std::uint64_t> mesh;
    std::vector<CheckpointArray> arrays;
    std::map<std::string, CheckpointValue, std::less<>> values;

    /// All names, sorted, with their types and shapes, one per line; also stored in the file.
    std::string manifest() const;
};

} // namespace DNDS
