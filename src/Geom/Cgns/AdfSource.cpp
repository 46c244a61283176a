// Files of the ADF type, through the low-level interface of the CGNS library (cgio), with partial reads.
//
// The library's own HDF5 may be another than ours: this file must not include <hdf5.h>.

#include "DNDS/Geom/Cgns/TreeSource.hpp"

#include "DNDS/Base/Error.hpp"

#include <cgns_io.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <map>

namespace DNDS::Geom::Cgns {

namespace {

/// The library counts values of a node by this type, 32 bits wide in most builds.
constexpr index maxValues = std::numeric_limits<cgsize_t>::max();

/// Longer than any name, label, type or message of the library.
using Text = std::array<char, 256>;

// The library keeps the message of its last failure.
std::string lastError() {
    Text text{};
    cgio_error_message(text.data());
    return text.data();
}

// By the two letters of the ADF manual; other types are not used by meshes.
DataType typeFrom(std::string_view name) {
    if (name == "MT")
        return DataType::None;
    if (name == "C1")
        return DataType::Text;
    if (name == "I4")
        return DataType::Int32;
    if (name == "I8")
        return DataType::Int64;
    if (name == "R4")
        return DataType::Real32;
    if (name == "R8")
        return DataType::Real64;
    return DataType::Other;
}

std::string joined(const std::string &parent, const std::string &name) {
    return parent == "/" ? "/" + name : parent + "/" + name;
}

/// The difference between the numbers of two nodes of one open file. It is the same on all ranks, unlike the numbers,
/// which include the number of the open file.
/// Exclusive or of the bits: it cancels the part that numbers the open file, which root and node share, and `find`
/// inverts it exactly.
index distance(double root, double id) {
    return static_cast<index>(std::bit_cast<std::uint64_t>(root) ^ std::bit_cast<std::uint64_t>(id));
}

/// The library has no notion of several readers: each rank opens the file for itself. Node numbers of the library
/// contain the number of the open file, so ranks exchange positions (`distance`) instead.
class AdfSource : public TreeSource {
  public:
    explicit AdfSource(std::string path) : path_(std::move(path)), bytes_(fileSize(path_)) {
        if (cgio_open_file(path_.c_str(), CGIO_MODE_READ, CGIO_FILE_ADF, &file_) != CGIO_ERR_NONE)
            throw DataError(fmt::format("{}: the CGNS library cannot open it: {}", path_, lastError()));
        if (cgio_get_root_id(file_, &root_) != CGIO_ERR_NONE) {
            const std::string reason = lastError();
            cgio_close_file(file_);
            throw DataError(fmt::format("{}: no root node: {}", path_, reason));
        }
    }
    AdfSource(const AdfSource &) = delete;
    AdfSource &operator=(const AdfSource &) = delete;
    ~AdfSource() override { cgio_close_file(file_); }

    // Places of the root: its own path is "", so that paths of children begin with "/".
    TreeNode readTree(bool withSolutions) override {
        withSolutions_ = withSolutions;
        WalkGuard guard(path_);
        return readNode(root_, "/", {path_, ""}, guard);
    }
    void read(const TreeNode &node, index first, std::span<index> values) override { readValues(node, first, values); }
    void read(const TreeNode &node, index first, std::span<real> values) override { readValues(node, first, values); }

  private:
    void check(int status, const std::string &path) const {
        DNDS_CHECK(status == CGIO_ERR_NONE, DataError, "{}: node {}: {}", path_, path, lastError());
    }
    /// The file and the path of a node after following links.
    using Place = std::pair<std::string, std::string>;
    Place placeOf(double id, Place place) const;
    TreeNode readNode(double id, const std::string &path, const Place &place, WalkGuard &guard);
    void readChildren(double id, TreeNode &node, const Place &place, WalkGuard &guard);
    void describeData(double id, TreeNode &node) const;
    void loadSmallData(TreeNode &node);
    double find(const TreeNode &node);
    double findByName(const std::string &path);
    template <class T>
    void readValues(const TreeNode &node, index first, std::span<T> values);
    // Reads values of the type in the file and converts them.
    template <class Stored, class T>
    void readAs(const TreeNode &node, index first, std::span<T> values);

    std::string path_;
    bool withSolutions_ = false;
    index bytes_;
    int file_ = 0;
    double root_ = 0.0;
    std::map<std::string, double> ids_;
};

/// The library follows links silently; their targets must be known to detect cycles.
AdfSource::Place AdfSource::placeOf(double id, Place place) const {
    int length = 0;
    check(cgio_is_link(file_, id, &length), place.second);
    if (length == 0)
        return place;
    std::array<char, CGIO_MAX_FILE_LENGTH + 1> file{};
    std::array<char, CGIO_MAX_LINK_LENGTH + 1> path{};
    int fileLength = 0;
    int pathLength = 0;
    check(cgio_link_size(file_, id, &fileLength, &pathLength), place.second);
    DNDS_CHECK(fileLength >= 0 && fileLength <= CGIO_MAX_FILE_LENGTH && pathLength > 0 &&
                   pathLength <= CGIO_MAX_LINK_LENGTH,
               DataError, "{}: link {} has an impossible length", path_, place.second);
    check(cgio_get_link(file_, id, file.data(), path.data()), place.second);
    return {fileLength == 0 ? place.first : std::string(file.data()), path.data()};
}

// A node is known by its place only if no link led to it: `place` then is the distance from the root. Nodes beyond
// links have their numbers in `ids_`, on this rank alone.
TreeNode AdfSource::readNode(double id, const std::string &path, const Place &place, WalkGuard &guard) {
    Text text{};
    TreeNode node;
    node.file = path_;
    node.path = path;
    node.place = place.first == path_ && place.second == (path == "/" ? "" : path) ? distance(root_, id) : 0;
    node.name = path.substr(path.rfind('/') + 1);
    check(cgio_get_label(file_, id, text.data()), path);
    node.label = text.data();
    if (path != "/" && !isWanted(node, withSolutions_))
        return node;
    const Place real = placeOf(id, place);
    guard.enter(real);
    describeData(id, node);
    if (node.place == 0)
        ids_[path] = id;
    loadSmallData(node);
    readChildren(id, node, real, guard);
    guard.leave();
    return node;
}

// In batches, since the library takes an array of fixed size. Unwanted children are dropped with all below them.
void AdfSource::readChildren(double id, TreeNode &node, const Place &place, WalkGuard &guard) {
    int count = 0;
    check(cgio_number_children(file_, id, &count), node.path);
    constexpr int batch = 256;
    std::array<double, batch> ids{};
    Text text{};
    for (int first = 1; first <= count; first += batch) {
        int found = 0;
        check(cgio_children_ids(file_, id, first, std::min(batch, count - first + 1), &found, ids.data()), node.path);
        DNDS_CHECK(found > 0 && found <= batch, DataError, "{}: node {} claims {} children, but there are fewer", path_,
                   node.path, count);
        for (std::size_t k = 0; k < static_cast<std::size_t>(found); k++) {
            check(cgio_get_name(file_, ids[k], text.data()), node.path);
            const std::string name = text.data();
            TreeNode child = readNode(ids[k], joined(node.path, name), {place.first, place.second + "/" + name}, guard);
            if (isWanted(child, withSolutions_))
                node.children.push_back(std::move(child));
        }
    }
}

// The sizes come from the file: they are checked before anything is allocated.
void AdfSource::describeData(double id, TreeNode &node) const {
    Text type{};
    check(cgio_get_data_type(file_, id, type.data()), node.path);
    node.type = typeFrom(type.data());
    if (node.type == DataType::None || node.type == DataType::Other)
        return;
    int rank = 0;
    std::array<cgsize_t, CGIO_MAX_DIMENSIONS> dimensions{};
    check(cgio_get_dimensions(file_, id, &rank, dimensions.data()), node.path);
    DNDS_CHECK(rank >= 0 && rank <= CGIO_MAX_DIMENSIONS, DataError, "{}: node {} claims {} dimensions", path_,
               node.path, rank);
    node.dimensions.assign(dimensions.begin(), dimensions.begin() + rank);
    // A node may link to another file of unknown size; only a slice is read in any case.
    int links = 0;
    check(cgio_is_link(file_, id, &links), node.path);
    if (links == 0)
        checkFits(node, bytes_);
    DNDS_CHECK(node.size() >= 0 && node.size() <= maxValues, DataError,
               "{}: node {} has too many values for this CGNS library", path_, node.path);
}

// Texts and up to `maxNumbers` numbers are kept in the tree; other data are read by the ranks that need them.
void AdfSource::loadSmallData(TreeNode &node) {
    const index size = node.size();
    if (node.type == DataType::Text && size <= TreeNode::maxText && size > 0) {
        std::string text(static_cast<std::size_t>(size), '\0');
        check(cgio_read_block_data(file_, find(node), 1, static_cast<cgsize_t>(size), text.data()), node.path);
        node.text = std::move(text);
    } else {
        loadFewNumbers(node);
    }
}

// Inverts `distance` with this rank's own root.
double AdfSource::find(const TreeNode &node) {
    if (node.place == 0)
        return findByName(node.path);
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(root_) ^ static_cast<std::uint64_t>(node.place);
    return std::bit_cast<double>(bits);
}

/// Descends name by name, because whole paths may be longer than the library's buffers.
/// O(depth) look-ups the first time; `ids_` keeps every node on the way.
double AdfSource::findByName(const std::string &path) {
    const auto known = ids_.find(path);
    if (known != ids_.end())
        return known->second;
    double id = root_;
    if (path != "/") {
        const std::size_t slash = path.rfind('/');
        const double parent = findByName(slash == 0 ? "/" : path.substr(0, slash));
        check(cgio_get_node_id(file_, parent, path.substr(slash + 1).c_str(), &id), path);
    }
    return ids_[path] = id;
}

// In pieces through a buffer of the stored type; the library counts from 1.
// 512 KiB at most beside the values; cgio reads whole blocks of one type, hence the conversion here.
template <class Stored, class T>
void AdfSource::readAs(const TreeNode &node, index first, std::span<T> values) {
    const double id = find(node);
    constexpr index piece = index{1} << 16;
    std::vector<Stored> buffer(static_cast<std::size_t>(std::min(piece, static_cast<index>(values.size()))));
    for (index done = 0; done < static_cast<index>(values.size());) {
        const index count = std::min(piece, static_cast<index>(values.size()) - done);
        check(cgio_read_block_data(file_, id, static_cast<cgsize_t>(first + done + 1),
                                   static_cast<cgsize_t>(first + done + count), buffer.data()),
              node.path);
        std::transform(buffer.begin(), buffer.begin() + count, values.begin() + done,
                       [](Stored value) { return static_cast<T>(value); });
        done += count;
    }
}

// Integers may be read as reals, not the reverse.
template <class T>
void AdfSource::readValues(const TreeNode &node, index first, std::span<T> values) {
    const index count = static_cast<index>(values.size());
    DNDS_CHECK(first >= 0 && first <= node.size() - count, DataError,
               "{}: node {} has {} values, but values {} to {} are requested", path_, node.path, node.size(), first,
               first + count);
    switch (node.type) {
    case DataType::Int32:
        return readAs<std::int32_t>(node, first, values);
    case DataType::Int64:
        return readAs<std::int64_t>(node, first, values);
    case DataType::Real32:
        if constexpr (std::is_same_v<T, real>)
            return readAs<float>(node, first, values);
        break;
    case DataType::Real64:
        if constexpr (std::is_same_v<T, real>)
            return readAs<double>(node, first, values);
        break;
    default:
        break;
    }
    throw DataError(fmt::format("{}: the data of node {} have the wrong type", path_, node.path));
}

} // namespace

std::unique_ptr<TreeSource> openAdf(const std::string &path) { return std::make_unique<AdfSource>(path); }

} // namespace DNDS::Geom::Cgns
