/// @file TreeNode.hpp
/// @brief The nodes of a CGNS file in memory: their structure and small values; large values stay in the file.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace DNDS::Geom::Cgns {

/// The data type of a node: MT, C1, I4, I8, R4, R8 of the standard, or another.
enum class DataType : unsigned char { None, Text, Int32, Int64, Real32, Real64, Other };

/// The size of one value; 0 for None and Other. Local.
index bytesOf(DataType type) noexcept;

/// A node and its descendants.
struct TreeNode {
    std::string name;
    std::string label;
    std::string file; ///< file of its data, after following links
    std::string path; ///< within that file
    /// ADF: the position of the node in the file, relative to the root, so that all ranks read the node that rank 0
    /// found; 0 for nodes reached through links, which each rank finds by name.
    index place = 0;
    DataType type = DataType::None;
    std::vector<index> dimensions; ///< the first varies fastest
    std::string text;              ///< text of Text nodes with at most `maxText` characters
    std::vector<index> integers;   ///< values of integer nodes with at most `maxNumbers` values
    std::vector<real> reals;       ///< values of integer and real nodes with at most `maxNumbers` values
    std::vector<TreeNode> children;

    static constexpr index maxText = 1024;
    static constexpr index maxNumbers = 12;

    /// The number of values; -1 where it does not fit into 63 bits or a dimension is negative.
    index size() const noexcept;
    bool isInteger() const noexcept { return type == DataType::Int32 || type == DataType::Int64; }
    bool isReal() const noexcept { return type == DataType::Real32 || type == DataType::Real64; }

    /// The first child with this label or name; null if none has it. Local, O(children).
    const TreeNode *withLabel(std::string_view wanted) const noexcept;
    const TreeNode *named(std::string_view wanted) const noexcept;
    /// The text of the first child with this label; "" if none has it.
    std::string textOf(std::string_view wanted) const;
};

/// The node below Periodic_t that repeats its single-precision arrays in double: the only UserDefinedData_t that is
/// used.
inline constexpr std::string_view doublePrecision = "DoublePrecision";

/// Whether a node with this name and label and its children are used by the mesh reader or, with `withSolutions`, by
/// that of fields; others are not read.
bool isWanted(const TreeNode &node, bool withSolutions) noexcept;

/// The tree as bytes and back. Local.
std::string packTree(const TreeNode &node);
TreeNode unpackTree(std::string_view bytes);

} // namespace DNDS::Geom::Cgns
