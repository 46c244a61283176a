// Files of the HDF5 type, by the public mapping: a node is a group with the attributes name, label and type; its data
// are the data set " data" in the group; a link is a group of type "LK" with the data sets " path" and " file".
//
// Ranks open the file independently with HDF5's plain driver: slices are read at the speed of the file system, and a
// damaged part that only one rank reads cannot leave others waiting in a collective call.

#include "DNDS/Geom/Cgns/TreeSource.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/AtFinalize.hpp"
#include "DNDS/Serialize/HdfObject.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <type_traits>

namespace DNDS::Geom::Cgns {

namespace {

/// The best ratio of HDF5's compressors.
constexpr index maxCompression = 1100;

using DNDS::Detail::HdfObject;
using DNDS::Detail::HdfQuiet;

/// The texts of HDF5's error stack, innermost first.
std::string lastError() {
    std::string text;
    H5Ewalk2(
        H5E_DEFAULT, H5E_WALK_UPWARD,
        [](unsigned n, const H5E_error2_t *error, void *data) -> herr_t {
            if (n == 0 && error->desc != nullptr)
                *static_cast<std::string *>(data) = error->desc;
            return 0;
        },
        &text);
    return text.empty() ? "HDF5 gives no reason" : text;
}

/// An attribute of fixed-length text, without padding; "" if it is anything else.
std::string attributeText(hid_t node, const char *name) {
    const HdfObject attribute(H5Aopen(node, name, H5P_DEFAULT), H5Aclose);
    if (!attribute.valid())
        return {};
    const HdfObject type(H5Aget_type(attribute.get()), H5Tclose);
    const HdfObject space(H5Aget_space(attribute.get()), H5Sclose);
    if (!type.valid() || !space.valid() || H5Tget_class(type.get()) != H5T_STRING ||
        H5Tis_variable_str(type.get()) != 0 || H5Sget_simple_extent_npoints(space.get()) != 1)
        return {};
    const std::size_t size = H5Tget_size(type.get());
    if (size == 0 || size > 256)
        return {};
    std::string text(size, '\0');
    if (H5Aread(attribute.get(), type.get(), text.data()) < 0)
        return {};
    text.resize(std::min(text.find('\0'), text.size()));
    text.resize(text.find_last_not_of(' ') + 1);
    return text;
}

/// An integer attribute of one value, or `otherwise`.
index attributeNumber(hid_t node, const char *name, index otherwise) {
    const HdfObject attribute(H5Aopen(node, name, H5P_DEFAULT), H5Aclose);
    if (!attribute.valid())
        return otherwise;
    const HdfObject type(H5Aget_type(attribute.get()), H5Tclose);
    const HdfObject space(H5Aget_space(attribute.get()), H5Sclose);
    index value = otherwise;
    if (!type.valid() || !space.valid() || H5Tget_class(type.get()) != H5T_INTEGER ||
        H5Sget_simple_extent_npoints(space.get()) != 1 || H5Aread(attribute.get(), H5T_NATIVE_INT64, &value) < 0)
        return otherwise;
    return value;
}

/// By class and size: byte order does not matter, as HDF5 converts.
DataType typeOf(hid_t dataset) {
    const HdfObject type(H5Dget_type(dataset), H5Tclose);
    if (!type.valid())
        return DataType::Other;
    const std::size_t size = H5Tget_size(type.get());
    switch (H5Tget_class(type.get())) {
    case H5T_INTEGER:
        return size == 1 ? DataType::Text : size == 4 ? DataType::Int32 : size == 8 ? DataType::Int64 : DataType::Other;
    case H5T_FLOAT:
        return size == 4 ? DataType::Real32 : size == 8 ? DataType::Real64 : DataType::Other;
    default:
        return DataType::Other;
    }
}

enum class Storage : unsigned char { Plain, Compressed, Elsewhere, TooSmall };

/// The storage of a data set of this many bytes. HDF5 1.10 reads beyond its buffers if a damaged file reserves less
/// room than the data set's extent needs.
Storage storageOf(hid_t dataset, index bytes) {
    const HdfObject creation(H5Dget_create_plist(dataset), H5Pclose);
    const H5D_layout_t layout = creation.valid() ? H5Pget_layout(creation.get()) : H5D_LAYOUT_ERROR;
    if ((layout != H5D_COMPACT && layout != H5D_CONTIGUOUS && layout != H5D_CHUNKED) ||
        H5Pget_external_count(creation.get()) != 0)
        return Storage::Elsewhere;
    const hsize_t stored = H5Dget_storage_size(dataset);
    if (bytes > 0 && stored < (layout == H5D_CHUNKED ? 1 : static_cast<hsize_t>(bytes)))
        return Storage::TooSmall;
    return layout == H5D_CHUNKED && H5Pget_nfilters(creation.get()) > 0 ? Storage::Compressed : Storage::Plain;
}

/// HDF5 cannot release all of a damaged file and complains when MPI_Finalize closes it ("infinite loop closing
/// library"): the reader has already reported the file, so HDF5 prints nothing from then on. Called after HDF5 has
/// initialized itself, hence before it is closed: MPI deletes attributes of MPI_COMM_SELF in reverse order.
void quietAtEnd() {
    static bool done = false;
    if (done)
        return;
    H5open();
    atFinalize([](void *) noexcept { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }, nullptr);
    done = true;
}

/// Closing the file also closes objects that a damaged file leaves open.
HdfObject openedFile(const std::string &path) {
    quietAtEnd();
    const HdfObject access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
    return {H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose};
}

/// Keeps every file that links lead to open until the end. Damaged files are expected: each call's result is checked,
/// and sizes are compared with the file before memory is allocated.
class Hdf5Source : public TreeSource {
  public:
    explicit Hdf5Source(std::string path) : path_(std::move(path)) { open(path_); }

    TreeNode readTree(bool withSolutions) override {
        withSolutions_ = withSolutions;
        const HdfQuiet quiet;
        WalkGuard guard(path_);
        return readNode(path_, "/", guard);
    }
    void read(const TreeNode &node, index first, std::span<index> values) override {
        readValues(node, first, values, H5T_NATIVE_INT64);
    }
    void read(const TreeNode &node, index first, std::span<real> values) override {
        readValues(node, first, values, H5T_NATIVE_DOUBLE);
    }

  private:
    /// `bytes` bounds what any node in it can claim.
    struct OpenFile {
        HdfObject handle;
        index bytes = 0;
    };

    const OpenFile &open(const std::string &path);
    TreeNode readNode(const std::string &file, const std::string &path, WalkGuard &guard);
    void readChildren(hid_t group, TreeNode &node, WalkGuard &guard);
    void describeData(hid_t group, TreeNode &node);
    void loadSmallData(TreeNode &node);
    std::string linkText(hid_t group, const char *name) const;
    TreeNode followLink(hid_t group, const TreeNode &link, WalkGuard &guard);
    HdfObject openData(const TreeNode &node);
    template <class T>
    void readValues(const TreeNode &node, index first, std::span<T> values, hid_t memoryType);

    std::string path_;
    bool withSolutions_ = false;
    std::map<std::string, OpenFile> files_;
};

// References stay valid, as nodes of a map do not move.
const Hdf5Source::OpenFile &Hdf5Source::open(const std::string &path) {
    const auto known = files_.find(path);
    if (known != files_.end())
        return known->second;
    const HdfQuiet quiet;
    OpenFile file;
    file.bytes = fileSize(path);
    file.handle = openedFile(path);
    DNDS_CHECK(file.handle.valid(), DataError, "{}: HDF5 cannot open it: {}", path, lastError());
    return files_.emplace(path, std::move(file)).first->second;
}

/// Recursion depth is limited by WalkGuard. Children of unwanted nodes are not visited, which keeps the walk short in
/// files with long histories.
TreeNode Hdf5Source::readNode(const std::string &file, const std::string &path, WalkGuard &guard) {
    const HdfObject group(H5Gopen2(open(file).handle.get(), path.c_str(), H5P_DEFAULT), H5Gclose);
    DNDS_CHECK(group.valid(), DataError, "{}: node {} cannot be opened: {}", file, path, lastError());
    TreeNode node;
    node.file = file;
    node.path = path;
    node.name = path.substr(path.rfind('/') + 1);
    node.label = attributeText(group.get(), "label");
    if (path != "/" && attributeText(group.get(), "type") == "LK")
        return followLink(group.get(), node, guard);
    if (path != "/" && !isWanted(node, withSolutions_))
        return node;

    H5O_info_t info;
    DNDS_CHECK(H5Oget_info1(group.get(), &info) >= 0, DataError, "{}: node {}: {}", file, path, lastError());
    guard.enter({file, fmt::format("{}:{}", info.fileno, info.addr)});
    describeData(group.get(), node);
    loadSmallData(node);
    readChildren(group.get(), node, guard);
    guard.leave();
    return node;
}

/// The names of a group's links, in creation order if the file has it, else by name; empty if they cannot be listed.
///
/// HDF5 1.10 crashes on a damaged link while it fills a table of all links: it frees the unfilled part of the table.
/// Looking up a missing name decodes the links without a table, as does iterating in the file's own order where there
/// are many.
std::optional<std::vector<std::string>> linkNames(hid_t group) {
    struct Link {
        std::int64_t order;
        std::string name;
    };
    struct Listing {
        std::vector<Link> links;
        std::exception_ptr failure; // must not pass through HDF5
    } listed;
    const bool sound = H5Lexists(group, "\x01 no child has this name", H5P_DEFAULT) >= 0;
    const herr_t status =
        !sound
            ? -1
            : H5Literate(
                  group, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr,
                  [](hid_t, const char *name, const H5L_info_t *info, void *data) -> herr_t {
                      auto &to = *static_cast<Listing *>(data);
                      to.failure = attempt([&] { to.links.push_back({info->corder_valid ? info->corder : 0, name}); });
                      return to.failure ? -1 : 0;
                  },
                  &listed);
    if (listed.failure)
        std::rethrow_exception(listed.failure);
    if (status < 0)
        return std::nullopt;
    std::vector<Link> &links = listed.links;
    std::sort(links.begin(), links.end(),
              [](const Link &a, const Link &b) { return a.order != b.order ? a.order < b.order : a.name < b.name; });
    std::vector<std::string> names;
    for (Link &link : links)
        names.push_back(std::move(link.name));
    return names;
}

// Without the data sets of the node itself, whose names begin with a blank.
std::vector<std::string> childNames(hid_t group, const TreeNode &node) {
    std::optional<std::vector<std::string>> names = linkNames(group);
    DNDS_CHECK(names, DataError, "{}: the children of node {} cannot be listed: {}", node.file, node.path, lastError());
    std::erase_if(*names, [](const std::string &name) { return name.starts_with(' '); }); // data of the node itself
    return std::move(*names);
}

/// Sorted by the attribute "order" that CGNS libraries write, then by creation or name.
void Hdf5Source::readChildren(hid_t group, TreeNode &node, WalkGuard &guard) {
    struct Child {
        index order;
        TreeNode node;
    };
    std::vector<Child> children;
    const std::string prefix = node.path == "/" ? "/" : node.path + "/";
    for (const std::string &name : childNames(group, node)) {
        H5O_info_t info;
        if (H5Oget_info_by_name1(group, name.c_str(), &info, H5P_DEFAULT) < 0)
            throw DataError(fmt::format("{}: node {}{} cannot be opened: {}", node.file, prefix, name, lastError()));
        if (info.type != H5O_TYPE_GROUP)
            continue;
        TreeNode child = readNode(node.file, prefix + name, guard);
        child.name = name;
        if (!isWanted(child, withSolutions_))
            continue;
        const HdfObject handle(H5Gopen2(group, name.c_str(), H5P_DEFAULT), H5Gclose);
        children.push_back({attributeNumber(handle.get(), "order", 0), std::move(child)});
    }
    std::stable_sort(children.begin(), children.end(),
                     [](const Child &a, const Child &b) { return a.order < b.order; });
    for (Child &child : children)
        node.children.push_back(std::move(child.node));
}

/// Type, extent and storage are known after it, contents are not read.
void Hdf5Source::describeData(hid_t group, TreeNode &node) {
    if (H5Lexists(group, " data", H5P_DEFAULT) <= 0)
        return;
    const HdfObject dataset(H5Dopen2(group, " data", H5P_DEFAULT), H5Dclose);
    const HdfObject space(dataset.valid() ? H5Dget_space(dataset.get()) : -1, H5Sclose);
    std::array<hsize_t, H5S_MAX_RANK> extent{};
    const int rank = space.valid() ? H5Sget_simple_extent_dims(space.get(), extent.data(), nullptr) : -1;
    DNDS_CHECK(rank >= 0, DataError, "{}: the data of node {} cannot be described: {}", node.file, node.path,
               lastError());
    node.type = typeOf(dataset.get());
    for (int k = rank; k-- > 0;) // HDF5 lists the slowest dimension first
        node.dimensions.push_back(static_cast<index>(extent[static_cast<std::size_t>(k)]));
    if (rank == 0)
        node.dimensions.push_back(1);

    checkFits(node, open(node.file).bytes, maxCompression); // so that the product below does not overflow
    const Storage storage = storageOf(dataset.get(), node.size() * bytesOf(node.type));
    DNDS_CHECK(storage != Storage::Elsewhere, DataError, "{}: the data of node {} are not stored in the file itself",
               node.file, node.path);
    DNDS_CHECK(storage != Storage::TooSmall, DataError, "{}: node {} has more values than are stored", node.file,
               node.path);
    checkFits(node, open(node.file).bytes, storage == Storage::Compressed ? maxCompression : 1);
}

// As AdfSource::loadSmallData; longer texts are not read.
void Hdf5Source::loadSmallData(TreeNode &node) {
    const index size = node.size();
    if (node.type == DataType::Text && size <= TreeNode::maxText) {
        const HdfObject dataset = openData(node);
        std::string text(static_cast<std::size_t>(size), '\0');
        DNDS_CHECK(size == 0 ||
                       H5Dread(dataset.get(), H5T_NATIVE_CHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()) >= 0,
                   DataError, "{}: the text of node {} cannot be read: {}", node.file, node.path, lastError());
        node.text = std::move(text);
    } else {
        loadFewNumbers(node);
    }
}

// "" for anything that is not a short plain text: followLink reports it.
std::string Hdf5Source::linkText(hid_t group, const char *name) const {
    if (H5Lexists(group, name, H5P_DEFAULT) <= 0)
        return {};
    const HdfObject dataset(H5Dopen2(group, name, H5P_DEFAULT), H5Dclose);
    const HdfObject space(dataset.valid() ? H5Dget_space(dataset.get()) : -1, H5Sclose);
    const hssize_t size = space.valid() ? H5Sget_simple_extent_npoints(space.get()) : -1;
    if (size < 0 || size > 4096 || typeOf(dataset.get()) != DataType::Text ||
        storageOf(dataset.get(), size) != Storage::Plain)
        return {};
    std::string text(static_cast<std::size_t>(size), '\0');
    if (size > 0 && H5Dread(dataset.get(), H5T_NATIVE_CHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()) < 0)
        return {};
    text.resize(std::min(text.find('\0'), text.size()));
    return text;
}

/// A relative file name is relative to the file with the link. The guard sees the link and its target, so that cycles
/// of links are found.
TreeNode Hdf5Source::followLink(hid_t group, const TreeNode &link, WalkGuard &guard) {
    std::string path = linkText(group, " path");
    const std::string file = linkText(group, " file");
    DNDS_CHECK(!path.empty(), DataError, "{}: link {} leads nowhere", link.file, link.path);
    if (path.front() != '/')
        path.insert(path.begin(), '/');
    const std::string target =
        file.empty() ? link.file : (std::filesystem::path(link.file).parent_path() / file).string();
    DNDS_CHECK(std::filesystem::exists(target), DataError, "{}: link {} leads to {}, which does not exist", link.file,
               link.path, target);
    guard.enter({link.file, "link " + link.path});
    TreeNode node = readNode(target, path, guard);
    guard.leave();
    return node;
}

// Opened for each read: handles of nodes are not kept, as a tree has many.
HdfObject Hdf5Source::openData(const TreeNode &node) {
    const std::string path = (node.path == "/" ? "" : node.path) + "/ data";
    HdfObject dataset(H5Dopen2(open(node.file).handle.get(), path.c_str(), H5P_DEFAULT), H5Dclose);
    DNDS_CHECK(dataset.valid(), DataError, "{}: the data of node {} cannot be opened: {}", node.file, node.path,
               lastError());
    return dataset;
}

/// The largest block of a data set that starts at value `first` and is contiguous in file order: its position, and how
/// many of `count` values it covers.
struct Hyperslab {
    std::vector<hsize_t> start;
    std::vector<hsize_t> count;
    index size;
};

/// Hyperslabs are boxes, while a range of values is not: it is cut into a few boxes, 2 x rank - 1 at most.
/// First a partial row up to the next boundary of each dimension, then whole rows, planes and so on, then the rest
/// in reverse: each step covers all of the lower dimensions or stops there. Memory order equals file order, so
/// blocks are read into consecutive parts of the buffer.
Hyperslab largestHyperslab(const std::vector<index> &dimensions, index first, index count) {
    const std::size_t rank = dimensions.size();
    Hyperslab block{std::vector<hsize_t>(rank), std::vector<hsize_t>(rank, 1), 1};
    index stride = 1;
    bool growing = true;
    for (std::size_t k = 0; k < rank; k++) { // the fastest dimension first; HDF5 wants it last
        const index coordinate = first / stride % dimensions[k];
        block.start[rank - 1 - k] = static_cast<hsize_t>(coordinate);
        if (growing) {
            const index steps = std::min(dimensions[k] - coordinate, count / stride);
            block.count[rank - 1 - k] = static_cast<hsize_t>(steps);
            block.size = steps * stride;
            growing = steps == dimensions[k] && count / (stride * dimensions[k]) > 0;
        }
        stride *= dimensions[k];
    }
    return block;
}

/// HDF5 converts types during the read, in buffers of its own.
template <class T>
void Hdf5Source::readValues(const TreeNode &node, index first, std::span<T> values, hid_t memoryType) {
    const HdfQuiet quiet;
    const index count = static_cast<index>(values.size());
    const bool fits = std::is_same_v<T, index> ? node.isInteger() : node.isInteger() || node.isReal();
    DNDS_CHECK(fits, DataError, "{}: the data of node {} have the wrong type", node.file, node.path);
    DNDS_CHECK(first >= 0 && first <= node.size() - count, DataError,
               "{}: node {} has {} values, but values {} to {} are requested", node.file, node.path, node.size(), first,
               first + count);
    if (count == 0)
        return;
    const HdfObject dataset = openData(node);
    const HdfObject space(H5Dget_space(dataset.get()), H5Sclose);
    DNDS_CHECK(space.valid() && H5Sget_simple_extent_npoints(space.get()) == node.size(), DataError,
               "{}: the data of node {} have changed their size", node.file, node.path);
    for (index done = 0; done < count;) {
        const Hyperslab block = largestHyperslab(node.dimensions, first + done, count - done);
        const auto size = static_cast<hsize_t>(block.size);
        const HdfObject memory(H5Screate_simple(1, &size, nullptr), H5Sclose);
        if (H5Sget_simple_extent_ndims(space.get()) > 0)
            H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, block.start.data(), nullptr, block.count.data(), nullptr);
        DNDS_CHECK(H5Dread(dataset.get(), memoryType, memory.get(), space.get(), H5P_DEFAULT, values.data() + done) >=
                       0,
                   DataError, "{}: the data of node {} cannot be read: {}", node.file, node.path, lastError());
        done += block.size;
    }
}

} // namespace

std::vector<std::string> hdf5Names(const std::string &path) {
    const HdfQuiet quiet;
    const HdfObject file = openedFile(path);
    const HdfObject root(file.valid() ? H5Gopen2(file.get(), "/", H5P_DEFAULT) : -1, H5Gclose);
    return root.valid() ? linkNames(root.get()).value_or(std::vector<std::string>()) : std::vector<std::string>();
}

std::unique_ptr<TreeSource> openHdf5(const std::string &path) { return std::make_unique<Hdf5Source>(path); }

} // namespace DNDS::Geom::Cgns
