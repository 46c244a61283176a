#include "DNDS/Geom/Cgns/TreeNode.hpp"

#include "DNDS/Base/Error.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <type_traits>

namespace DNDS::Geom::Cgns {

namespace {

/// Visits all members in the order in which they travel; children depth first.
void forMembers(auto &node, const auto &visit) {
    visit(node.name);
    visit(node.label);
    visit(node.file);
    visit(node.path);
    visit(node.place);
    visit(node.type);
    visit(node.dimensions);
    visit(node.text);
    visit(node.integers);
    visit(node.reals);
    visit(node.children);
}

/// Lists, texts and children; or else a number.
template <class T>
concept IsList = requires(T values) {
    values.resize(1);
};

/// Appends bytes. Native byte order and sizes: for ranks of one job, which have one architecture. Lists are preceded by
/// their lengths, so the bytes need no delimiters. O(bytes of the tree).
void pack(const auto &value, std::string &bytes) { bytes.append(reinterpret_cast<const char *>(&value), sizeof value); }
template <IsList T>
void pack(const T &values, std::string &bytes) {
    pack(std::ssize(values), bytes);
    if constexpr (std::is_same_v<typename T::value_type, TreeNode>)
        for (const TreeNode &child : values)
            forMembers(child, [&](const auto &member) { pack(member, bytes); });
    else
        bytes.append(reinterpret_cast<const char *>(values.data()), values.size() * sizeof values[0]);
}

/// The inverse, which takes the bytes away. It trusts them except for their length, as they come from rank 0 of this
/// program.
void take(void *to, std::size_t size, std::string_view &bytes) {
    DNDS_CHECK(size <= bytes.size(), StateError, "a packed tree is too short");
    if (size > 0)
        std::memcpy(to, bytes.data(), size);
    bytes.remove_prefix(size);
}
void unpack(auto &value, std::string_view &bytes) { take(&value, sizeof value, bytes); }
template <IsList T>
void unpack(T &values, std::string_view &bytes) {
    index size = 0;
    unpack(size, bytes);
    values.resize(static_cast<std::size_t>(size));
    if constexpr (std::is_same_v<typename T::value_type, TreeNode>)
        for (TreeNode &child : values)
            forMembers(child, [&](auto &member) { unpack(member, bytes); });
    else
        take(values.data(), values.size() * sizeof values[0], bytes);
}

} // namespace

// The size of one value; 0 for types without values.
index bytesOf(DataType type) noexcept {
    switch (type) {
    case DataType::Text:
        return 1;
    case DataType::Int32:
    case DataType::Real32:
        return 4;
    case DataType::Int64:
    case DataType::Real64:
        return 8;
    default:
        return 0;
    }
}

// Extents come from the file: the product is checked for overflow.
index TreeNode::size() const noexcept {
    if (type == DataType::None || dimensions.empty())
        return 0;
    index product = 1;
    for (const index extent : dimensions)
        // Damaged extents: -1 differs from every expected size.
        if (extent < 0 || __builtin_mul_overflow(product, extent, &product))
            return -1;
    return product;
}

// The first one: nodes keep the order of the file.
const TreeNode *TreeNode::withLabel(std::string_view wanted) const noexcept {
    const auto found = std::ranges::find(children, wanted, &TreeNode::label);
    return found == children.end() ? nullptr : &*found;
}

const TreeNode *TreeNode::named(std::string_view wanted) const noexcept {
    const auto found = std::ranges::find(children, wanted, &TreeNode::name);
    return found == children.end() ? nullptr : &*found;
}

std::string TreeNode::textOf(std::string_view wanted) const {
    const TreeNode *node = withLabel(wanted);
    return node == nullptr ? std::string{} : node->text;
}

// Everything else, such as histories, is skipped with all that it contains. The last label, quotes included, is that of
// Transform and InwardNormalIndex (SIDS file mapping).
bool isWanted(const TreeNode &node, bool withSolutions) noexcept {
    static constexpr std::array<std::string_view, 24> wanted{"CGNSBase_t",
                                                             "CGNSLibraryVersion_t",
                                                             "Zone_t",
                                                             "ZoneType_t",
                                                             "GridCoordinates_t",
                                                             "DataArray_t",
                                                             "Rind_t",
                                                             "Elements_t",
                                                             "IndexRange_t",
                                                             "IndexArray_t",
                                                             "ZoneBC_t",
                                                             "BC_t",
                                                             "GridLocation_t",
                                                             "FamilyName_t",
                                                             "Family_t",
                                                             "FamilyBC_t",
                                                             "ZoneGridConnectivity_t",
                                                             "GridConnectivity_t",
                                                             "GridConnectivity1to1_t",
                                                             "GridConnectivityType_t",
                                                             "GridConnectivityProperty_t",
                                                             "Periodic_t",
                                                             "DimensionalUnits_t",
                                                             "\"int[IndexDimension]\""};
    if (node.label == "UserDefinedData_t")
        return node.name == doublePrecision;
    if (node.label == "FlowSolution_t")
        return withSolutions;
    return std::find(wanted.begin(), wanted.end(), node.label) != wanted.end();
}

std::string packTree(const TreeNode &node) {
    std::string bytes;
    forMembers(node, [&](const auto &member) { pack(member, bytes); });
    return bytes;
}

TreeNode unpackTree(std::string_view bytes) {
    TreeNode node;
    forMembers(node, [&](auto &member) { unpack(member, bytes); });
    return node;
}

} // namespace DNDS::Geom::Cgns
