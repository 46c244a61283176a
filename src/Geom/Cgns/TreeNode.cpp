#include "DNDS/Geom/Cgns/TreeNode.hpp"

#include "DNDS/Base/Error.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace DNDS::Geom::Cgns {

namespace {

/// Native byte order and sizes: for ranks of one job, which have one architecture.
/// O(bytes of the tree). Lists are preceded by their lengths, so the bytes need no delimiters.
class Packer {
  public:
    void add(index value) { bytes_.append(reinterpret_cast<const char *>(&value), sizeof value); }
    void add(const std::string &text) {
        add(static_cast<index>(text.size()));
        bytes_ += text;
    }
    /// Trivially copyable values, as their bytes.
    template <class T>
    void add(const std::vector<T> &values) {
        add(static_cast<index>(values.size()));
        bytes_.append(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
    }
    void add(const TreeNode &node) {
        add(node.name);
        add(node.label);
        add(node.file);
        add(node.path);
        add(node.place);
        add(static_cast<index>(node.type));
        add(node.dimensions);
        add(node.text);
        add(node.integers);
        add(node.reals);
        // Depth first.
        add(static_cast<index>(node.children.size()));
        for (const TreeNode &child : node.children)
            add(child);
    }
    std::string take() { return std::move(bytes_); }

  private:
    std::string bytes_;
};

/// The inverse of Packer; reads members in the same order. It trusts the bytes except for their length, as they come
/// from rank 0 of this program.
class Unpacker {
  public:
    explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}

    index number() {
        index value = 0;
        copy(&value, sizeof value);
        return value;
    }
    std::string text() {
        std::string value(static_cast<std::size_t>(number()), '\0');
        copy(value.data(), value.size());
        return value;
    }
    template <class T>
    std::vector<T> list() {
        std::vector<T> values(static_cast<std::size_t>(number()));
        copy(values.data(), values.size() * sizeof(T));
        return values;
    }
    TreeNode node() {
        TreeNode node;
        node.name = text();
        node.label = text();
        node.file = text();
        node.path = text();
        node.place = number();
        node.type = static_cast<DataType>(number());
        node.dimensions = list<index>();
        node.text = text();
        node.integers = list<index>();
        node.reals = list<real>();
        node.children.resize(static_cast<std::size_t>(number()));
        for (TreeNode &child : node.children)
            child = this->node();
        return node;
    }

  private:
    /// All reads come here: the only check of length.
    void copy(void *to, std::size_t size) {
        DNDS_CHECK(size <= bytes_.size(), StateError, "a packed tree is too short");
        if (size > 0)
            std::memcpy(to, bytes_.data(), size);
        bytes_.remove_prefix(size);
    }

    std::string_view bytes_;
};

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
    const auto found =
        std::find_if(children.begin(), children.end(), [&](const TreeNode &c) { return c.label == wanted; });
    return found == children.end() ? nullptr : &*found;
}

const TreeNode *TreeNode::named(std::string_view wanted) const noexcept {
    const auto found =
        std::find_if(children.begin(), children.end(), [&](const TreeNode &c) { return c.name == wanted; });
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
    Packer packer;
    packer.add(node);
    return packer.take();
}

TreeNode unpackTree(std::string_view bytes) { return Unpacker(bytes).node(); }

} // namespace DNDS::Geom::Cgns
