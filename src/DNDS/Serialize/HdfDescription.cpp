#include "DNDS/Serialize/HdfDescription.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Serialize/DurableFile.hpp"
#include "DNDS/Serialize/HdfAttribute.hpp"
#include "DNDS/Serialize/RowBlocks.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include <sys/mman.h>

namespace DNDS::Detail {

namespace {

constexpr const char *format = "DNDS checkpoint";
constexpr const char *meshName = "mesh";
// Of the format; readers refuse later ones.
constexpr index version = 1;
constexpr hsize_t alignment = 4096;
// A description beyond this is an error, not a file.
constexpr std::size_t maxRoom = std::size_t{1} << 30;
constexpr index maxDescription = std::numeric_limits<int>::max();
/// The file starts with a header in plain text (HDF5's "user block"). The description is checked against it before HDF5
/// reads it, since damaged files can crash HDF5.
constexpr hsize_t headerBytes = alignment;
constexpr const char *headerText =
    "DNDS checkpoint {}\nfile of {} bytes, description up to byte {} with crc32 {:08x}\n";
/// The third line.
constexpr const char *contentText = "content {:016x}\n";
/// The position at which version 2 of the superblock stores the size of the file without the header.
constexpr std::size_t endOfFilePlace = headerBytes + 28;

void *keepUser(void *self) { return self; }
herr_t freeUser(void *) { return 0; }

/// Has HDF5 keep a file in memory of the callbacks, and never on the disk.
void useMemory(const HdfObject &access, std::size_t increment, H5FD_file_image_callbacks_t callbacks) {
    requireHdf(H5Pset_fapl_core(access.get(), increment, false), "a file in memory");
    requireHdf(H5Pset_file_image_callbacks(access.get(), &callbacks), "a file in memory");
}

/// The memory of a file that HDF5 keeps in memory ("core") and hands over when it closes the file. It ends with the
/// last byte that HDF5 wrote, while the file may be far longer: bytes of datasets take no memory.
class MemoryFile {
  public:
    MemoryFile() = default;
    MemoryFile(const MemoryFile &) = delete;
    MemoryFile &operator=(const MemoryFile &) = delete;

    void use(const HdfObject &access) {
        constexpr std::size_t increment = 64 << 10;
        useMemory(access, increment, {allocate, copy, reallocate, release, keepUser, freeUser, this});
    }
    std::vector<std::byte> &bytes() { return bytes_; }

  private:
    static void *allocate(std::size_t size, H5FD_file_image_op_t, void *) { return std::malloc(size); }
    static void *copy(void *to, const void *from, std::size_t size, H5FD_file_image_op_t, void *) {
        return std::memcpy(to, from, size);
    }
    // HDF5 asks for more each time it writes beyond the end: the last size is that of the file in memory.
    static void *reallocate(void *memory, std::size_t size, H5FD_file_image_op_t, void *self) {
        void *larger = std::realloc(memory, size);
        if (larger != nullptr)
            static_cast<MemoryFile *>(self)->size_ = size;
        return larger;
    }
    // Exceptions must not pass through HDF5: an empty file is noticed by tryImage.
    static herr_t release(void *memory, H5FD_file_image_op_t operation, void *self) {
        auto &file = *static_cast<MemoryFile *>(self);
        if (operation == H5FD_FILE_IMAGE_OP_FILE_CLOSE) {
            const auto *begin = static_cast<const std::byte *>(memory);
            if (attempt([&] { file.bytes_.assign(begin, begin + file.size_); }))
                file.bytes_.clear();
        }
        std::free(memory);
        return 0;
    }

    std::size_t size_ = 0;
    std::vector<std::byte> bytes_;
};

/// A name that no file can have: HDF5 opens no file in memory under the name of an existing file.
constexpr const char *noFile = "/dev/null/checkpoint";

/// A file in memory, zero beyond the given bytes, however long: only these take memory. HDF5 opens it without a copy.
/// Untouched pages of the mapping are never backed, so memory is O(description) for a file of any size.
class SparseImage {
  public:
    explicit SparseImage(const FileImage &image) : size_(static_cast<std::size_t>(image.bytes)) {
        // A read-only mapping is never charged, even where the system does not overcommit memory.
        memory_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        DNDS_CHECK(memory_ != MAP_FAILED, MemoryError, "no address space for a file of {} bytes", size_);
        if (::mprotect(memory_, image.front.size(), PROT_READ | PROT_WRITE) != 0) {
            ::munmap(memory_, size_);
            throw MemoryError(fmt::format("no memory for a description of {} bytes", image.front.size()));
        }
        std::memcpy(memory_, image.front.data(), image.front.size());
    }
    SparseImage(const SparseImage &) = delete;
    SparseImage &operator=(const SparseImage &) = delete;
    ~SparseImage() { ::munmap(memory_, size_); }

    /// It must live until the file is closed.
    void use(const HdfObject &access) {
        useMemory(access, alignment, {allocate, copy, reallocate, release, keepUser, freeUser, this});
        requireHdf(H5Pset_file_image(access.get(), memory_, size_), "a file in memory");
    }

  private:
    static void *allocate(std::size_t, H5FD_file_image_op_t, void *self) {
        return static_cast<SparseImage *>(self)->memory_;
    }
    static void *copy(void *to, const void *, std::size_t, H5FD_file_image_op_t, void *) { return to; }
    static void *reallocate(void *, std::size_t, H5FD_file_image_op_t, void *) { return nullptr; }
    // The mapping belongs to the SparseImage.
    static herr_t release(void *, H5FD_file_image_op_t, void *) { return 0; }

    void *memory_ = nullptr;
    std::size_t size_ = 0;
};

/// Access with version 2 of superblock and object headers, which have their own checksums.
HdfObject fileAccess() {
    HdfObject access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "file access");
    requireHdf(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_V18), "file access");
    requireHdf(H5Pset_alignment(access.get(), alignment, alignment), "file access");
    requireHdf(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG), "file access");
#if H5_VERSION_GE(1, 10, 7)
    requireHdf(H5Pset_file_locking(access.get(), false, true),
               "file access"); // files never change once they have a name
#endif
    return access;
}

// Without times.
HdfObject makeGroup(hid_t parent, const std::string &name) {
    const HdfObject properties(H5Pcreate(H5P_GROUP_CREATE), H5Pclose, name);
    requireHdf(H5Pset_obj_track_times(properties.get(), false), name); // the same content, the same file
    return {H5Gcreate2(parent, name.c_str(), H5P_DEFAULT, properties.get(), H5P_DEFAULT), H5Gclose, name};
}

/// Creates a dataset and returns its place in the file; 0 if it has no bytes.
/// Space is allocated at once and never filled: values are written later, past HDF5.
index makeDataset(hid_t parent, const std::string &name, hid_t type, const std::vector<hsize_t> &sizes) {
    const HdfObject properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, name);
    requireHdf(H5Pset_obj_track_times(properties.get(), false), name);
    requireHdf(H5Pset_alloc_time(properties.get(), H5D_ALLOC_TIME_EARLY), name);
    requireHdf(H5Pset_fill_time(properties.get(), H5D_FILL_TIME_NEVER), name);
    const HdfObject space(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr), H5Sclose, name);
    const HdfObject data(
        H5Dcreate2(parent, name.c_str(), type, space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT), H5Dclose,
        name);
    // HDF5 gives no place to datasets without elements.
    const bool empty = std::find(sizes.begin(), sizes.end(), hsize_t{0}) != sizes.end();
    return empty ? 0 : static_cast<index>(H5Dget_offset(data.get()));
}

/// The place of a dataset that must have this type and these sizes (their product is known not to overflow) and lie
/// within a file of this many bytes.
/// The comparisons are written without sums that could overflow for a damaged file.
index placeOf(hid_t parent, const std::string &name, hid_t type, const std::vector<hsize_t> &sizes, index fileBytes) {
    const HdfObject data(H5Dopen2(parent, name.c_str(), H5P_DEFAULT), H5Dclose, "dataset " + name);
    const HdfObject stored(H5Dget_type(data.get()), H5Tclose, name);
    DNDS_CHECK(H5Tequal(stored.get(), type) > 0, DataError,
               "dataset {} has another type than its array, or another byte order than this machine", name);
    const HdfObject space(H5Dget_space(data.get()), H5Sclose, name);
    std::vector<hsize_t> found(static_cast<std::size_t>(std::max(0, H5Sget_simple_extent_ndims(space.get()))));
    requireHdf(H5Sget_simple_extent_dims(space.get(), found.data(), nullptr), name);
    // Attributes and datasets say the same twice: a damaged file rarely agrees.
    DNDS_CHECK(found == sizes, DataError, "dataset {} has other sizes than its array", name);
    const HdfObject properties(H5Dget_create_plist(data.get()), H5Pclose, name);
    const haddr_t place = H5Dget_offset(data.get());
    const bool empty = std::find(sizes.begin(), sizes.end(), hsize_t{0}) != sizes.end();
    DNDS_CHECK(empty || (H5Pget_layout(properties.get()) == H5D_CONTIGUOUS && place != HADDR_UNDEF), DataError,
               "dataset {} is not contiguous", name);
    const hsize_t bytes =
        std::accumulate(sizes.begin(), sizes.end(), hsize_t{H5Tget_size(type)}, std::multiplies<hsize_t>());
    const auto end = static_cast<hsize_t>(fileBytes);
    DNDS_CHECK(empty || (bytes <= end && place >= headerBytes && place <= end - bytes), DataError,
               "dataset {} does not lie within the file", name);
    return empty ? 0 : static_cast<index>(place);
}

/// Calls `make` or `placeOf` for each dataset of an array.
template <class Dataset>
void forEachDataset(CheckpointArray &array, const HdfObject &scalar, Dataset &&dataset) {
    const auto blocks = static_cast<hsize_t>(array.blocks());
    const auto scalars = static_cast<hsize_t>(scalarsOf(array.kind, array.elementBytes));
    // Values: [elements] of ragged arrays, [rows x width] of others, and another dimension for elements of several
    // numbers.
    std::vector<hsize_t> sizes{static_cast<hsize_t>(array.ragged ? array.elements : array.rows)};
    if (!array.ragged)
        sizes.push_back(static_cast<hsize_t>(array.width));
    if (scalars != 1)
        sizes.push_back(scalars);
    const auto both = [&](CheckpointPlace &place, const std::string &name, hid_t type,
                          const std::vector<hsize_t> &shape) {
        place.values = dataset(name, type, shape);
        place.checksums = dataset(name + ".crc32", H5T_NATIVE_UINT32, std::vector<hsize_t>{blocks});
    };
    both(array.values, "values", scalar.get(), sizes);
    if (array.ragged)
        both(array.offsets, "offsets", H5T_NATIVE_INT64, {static_cast<hsize_t>(array.rows) + 1});
    if (array.listed)
        both(array.ids, "ids", H5T_NATIVE_INT64, {static_cast<hsize_t>(array.rows)});
}

// Attributes first, then the datasets, whose places go into `array`.
void describeArray(hid_t arrays, CheckpointArray &array) {
    const HdfObject group = makeGroup(arrays, array.name);
    const auto integer = [&](const char *name, index value) {
        writeAttribute(group.get(), name, std::vector<index>{value});
    };
    writeAttribute(group.get(), "kind", std::string(elementKindName(array.kind)));
    writeAttribute(group.get(), "layout", std::string(array.ragged ? "ragged" : "fixed"));
    integer("elementBytes", array.elementBytes);
    integer("width", array.width);
    integer("rows", array.rows);
    integer("elements", array.elements);
    integer("blockRows", array.blockRows);
    integer("idsListed", array.listed ? 1 : 0);
    const HdfObject scalar = hdfScalarType(array.kind, array.elementBytes);
    forEachDataset(array, scalar, [&](const std::string &name, hid_t type, const std::vector<hsize_t> &sizes) {
        return makeDataset(group.get(), name, type, sizes);
    });
}

// The inverse of elementKindName.
ElementKind kindOf(const std::string &name) {
    for (int kind = 0; kind < elementKinds; kind++)
        if (elementKindName(static_cast<ElementKind>(kind)) == name)
            return static_cast<ElementKind>(kind);
    throw DataError(fmt::format("'{}' is not an element type", name));
}

/// Throws if numbers contradict each other or the size of the file: afterwards nothing computed from them overflows.
/// The reader trusts these numbers afterwards: sizes of buffers, offsets in the file and loop bounds follow from them.
void checkNumbers(const CheckpointArray &array, index fileBytes) {
    constexpr index maxRows = std::numeric_limits<index>::max() / 4;
    constexpr index maxBlocks = index{1} << 40; // times ranks
    constexpr index maxWidth = std::numeric_limits<rowsize>::max();
    constexpr auto word = static_cast<index>(sizeof(index));
    // Each number alone first, then their relations.
    const auto within = [](index number, index least, index most) { return number >= least && number <= most; };
    const bool each = within(array.elementBytes, 1, maxWidth) && within(array.width, 0, maxWidth) &&
                      within(array.rows, 0, maxRows) && within(array.elements, 0, fileBytes / array.elementBytes) &&
                      within(array.blockRows, 1, maxRows);
    DNDS_CHECK(each && array.blocks() <= maxBlocks && array.elementBytes % scalarBytesOf(array.kind) == 0, DataError,
               "array {} has impossible sizes: elements of {} bytes, width {}, {} rows, {} elements, {} rows "
               "per block",
               array.name, array.elementBytes, array.width, array.rows, array.elements, array.blockRows);
    const bool product = array.width == 0 ? array.elements == 0
                                          : array.rows <= array.elements && array.elements % array.width == 0 &&
                                                array.elements / array.width == array.rows;
    DNDS_CHECK(array.ragged || product, DataError, "array {} contradicts itself: {} elements", array.name,
               array.elements);
    DNDS_CHECK((!array.ragged && !array.listed) || array.rows < fileBytes / word, DataError,
               "array {} has more rows than fit in the file: {}", array.name, array.rows);
}

// Numbers are checked before sizes are computed from them.
CheckpointArray readArray(hid_t arrays, const std::string &name, index fileBytes) {
    const HdfObject group(H5Gopen2(arrays, name.c_str(), H5P_DEFAULT), H5Gclose, "array " + name);
    const auto integer = [&](const char *attribute) { return readAttributeAs<index>(group.get(), attribute); };
    CheckpointArray array;
    array.name = name;
    array.kind = kindOf(readAttributeAs<std::string>(group.get(), "kind"));
    const auto layout = readAttributeAs<std::string>(group.get(), "layout");
    DNDS_CHECK(layout == "ragged" || layout == "fixed", DataError, "array {} has an unknown layout, {}", name, layout);
    array.ragged = layout == "ragged";
    array.elementBytes = integer("elementBytes");
    array.width = integer("width");
    array.rows = integer("rows");
    array.elements = integer("elements");
    array.blockRows = integer("blockRows");
    array.listed = integer("idsListed") != 0;
    checkNumbers(array, fileBytes);
    const HdfObject scalar = hdfScalarType(array.kind, array.elementBytes);
    forEachDataset(array, scalar, [&](const std::string &dataset, hid_t type, const std::vector<hsize_t> &sizes) {
        return placeOf(group.get(), dataset, type, sizes, fileBytes);
    });
    return array;
}

/// For iterations over links and attributes.
template <class Info>
herr_t keepName(hid_t, const char *name, const Info *, void *names) {
    static_cast<std::vector<std::string> *>(names)->emplace_back(name);
    return 0;
}

// Names in alphabetical order. The manifest in the file guards against attributes that a damaged file has lost.
CheckpointContent contentIn(const HdfObject &file, index fileBytes) {
    CheckpointContent content;
    if (requireHdf(H5Aexists(file.get(), meshName), "the fingerprint of the mesh") > 0)
        content.mesh = std::bit_cast<std::uint64_t>(readAttributeAs<index>(file.get(), meshName));
    const HdfObject arrays(H5Gopen2(file.get(), "arrays", H5P_DEFAULT), H5Gclose, "the group arrays");
    const HdfObject values(H5Gopen2(file.get(), "values", H5P_DEFAULT), H5Gclose, "the group values");
    std::vector<std::string> names;
    requireHdf(H5Literate(arrays.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, keepName<H5L_info_t>, &names),
               "the list of arrays");
    for (const std::string &name : std::exchange(names, {}))
        content.arrays.push_back(readArray(arrays.get(), name, fileBytes));
    requireHdf(H5Aiterate2(values.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, keepName<H5A_info_t>, &names),
               "the list of values");
    for (const std::string &name : names)
        content.values.emplace(name, readAttribute(values.get(), name));
    DNDS_CHECK(readAttributeAs<std::string>(file.get(), "manifest") == content.manifest(), DataError,
               "its manifest differs from its content:\n{}", content.manifest());
    return content;
}

/// About the bytes of everything but datasets: HDF5 puts datasets after this many.
/// An estimate; makeImage doubles it as long as it is too small.
std::size_t metadataRoom(const CheckpointContent &content) {
    std::size_t room = 4096 + 3072 * content.arrays.size() + content.manifest().size();
    for (const auto &[name, value] : content.values)
        room += 128 + name.size() + std::visit([](const auto &list) { return list.size() * sizeof(list[0]); }, value);
    return room;
}

/// The file with `room` for everything but datasets. The header is empty.
/// HDF5 lays out the datasets and their places without their values, so a file of any size costs O(description) memory.
FileImage tryImage(CheckpointContent &content, std::size_t room) {
    MemoryFile memory;
    const HdfObject access = fileAccess();
    memory.use(access);
    requireHdf(H5Pset_meta_block_size(access.get(), room), "a file in memory");
    // The user block keeps room for the header.
    const HdfObject creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose, "a file in memory");
    requireHdf(H5Pset_userblock(creation.get(), headerBytes), "a file in memory");
    requireHdf(H5Pset_obj_track_times(creation.get(), false), "a file in memory"); // of the root group
    HdfObject file(H5Fcreate("checkpoint", H5F_ACC_TRUNC, creation.get(), access.get()), H5Fclose, "a file in memory");
    writeAttribute(file.get(), "format", std::string(format));
    writeAttribute(file.get(), "version", std::vector<index>{version});
    writeAttribute(file.get(), "manifest", content.manifest());
    if (content.mesh)
        writeAttribute(file.get(), meshName, std::vector<index>{std::bit_cast<index>(*content.mesh)});
    {
        const HdfObject arrays = makeGroup(file.get(), "arrays");
        for (CheckpointArray &array : content.arrays)
            describeArray(arrays.get(), array);
        const HdfObject values = makeGroup(file.get(), "values");
        for (const auto &[name, value] : content.values)
            writeAttribute(values.get(), name, value);
    }
    requireHdf(file.close(), "the end of a file in memory"); // not flushed before: that would make room for datasets
    FileImage image{0, std::move(memory.bytes())};
    DNDS_CHECK(image.front.size() > endOfFilePlace + sizeof(index), MemoryError,
               "no memory for the description of a checkpoint");
    for (std::size_t byte = sizeof(index); byte-- > 0;) // little-endian, says the format
        image.bytes = image.bytes * 256 + std::to_integer<index>(image.front[endOfFilePlace + byte]);
    image.bytes += static_cast<index>(headerBytes);
    return image;
}

// The least place of a dataset, or the end of the file without any.
index firstPlaceOf(const CheckpointContent &content, index end) {
    for (const CheckpointArray &array : content.arrays)
        for (const CheckpointPlace &place : {array.values, array.offsets, array.ids})
            for (const index byte : {place.values, place.checksums})
                if (byte > 0)
                    end = std::min(end, byte);
    return end;
}

// Shorter files have a shorter header, which is then refused.
std::vector<std::byte> headerBytesOf(const DurableFile &file, index bytes) {
    std::vector<std::byte> front(static_cast<std::size_t>(std::min<index>(bytes, headerBytes)));
    file.readAt(0, front);
    return front;
}

/// Reads the description and checks it against the header, which is left empty.
/// From the outside in: kind of file, version, header, length, checksum. The header must equal the text that its
/// numbers give.
/// The checksum covers everything that HDF5 parses: a damaged description is refused before HDF5 sees it.
std::vector<std::byte> checkedDescription(const DurableFile &file, index bytes) {
    DNDS_CHECK(bytes > 0, DataError, "it is empty");
    std::vector<std::byte> front = headerBytesOf(file, bytes);
    const std::string text(reinterpret_cast<const char *>(front.data()), front.size());
    DNDS_CHECK(text.starts_with(format), DataError, "it is another kind of file");
    DNDS_CHECK(bytes > static_cast<index>(headerBytes), DataError, "it is truncated after {} bytes", bytes);
    // The format is plain text, so that people and scripts can read it.
    long long found = 0, size = 0, end = 0;
    unsigned sum = 0;
    const int numbers =
        std::sscanf(text.c_str(), // NOLINT: the text has its zero
                    "DNDS checkpoint %lld\nfile of %lld bytes, description up to byte %lld with crc32 %x", &found,
                    &size, &end, &sum);
    DNDS_CHECK(numbers < 1 || found <= version, DataError,
               "it has version {} of the format, but this library supports up to {}", found, version);
    DNDS_CHECK(numbers == 4 && text.starts_with(fmt::format(headerText, found, size, end, sum)), DataError,
               "its header is damaged");
    DNDS_CHECK(size <= bytes, DataError, "it is truncated: it has {} bytes instead of {}", bytes, size);
    DNDS_CHECK(size == bytes && end >= static_cast<index>(headerBytes) && end <= size, DataError,
               "it has {} bytes, but its header says {}", bytes, size);
    DNDS_CHECK(end <= maxDescription, DataError, "its description has {} bytes, more than {}", end, maxDescription);
    front.assign(static_cast<std::size_t>(end), std::byte{0}); // HDF5 must find nothing in the header
    const auto description = std::span(front).subspan(headerBytes);
    file.readAt(headerBytes, description);
    const std::uint32_t now = crc32Of(description);
    DNDS_CHECK(now == sum, DataError, "its description is damaged: the checksum is {:08x}, but {:08x} was written", now,
               sum);
    return front;
}

// Adds the path to messages.
template <class Read>
auto readable(const std::string &path, Read &&read) {
    try {
        return read();
    } catch (const DataError &error) {
        throw DataError(fmt::format("{} is not a readable checkpoint: {}", path, error.message()));
    }
}

} // namespace

// Everything but values has to precede the first dataset, since readers get only the bytes up to there.
// Each trial costs O(description); room doubles, so all of them cost O(the last one), and they end at 1 GiB.
FileImage makeImage(CheckpointContent &content) {
    const HdfQuiet quiet;
    for (std::size_t room = metadataRoom(content);; room *= 2) {
        DNDS_CHECK(room < maxRoom, DataError, "the description of a checkpoint needs more than {} bytes", maxRoom);
        FileImage image = tryImage(content, room);
        const auto end = static_cast<std::size_t>(firstPlaceOf(content, image.bytes));
        const auto last =
            std::find_if(image.front.rbegin(), image.front.rend(), [](std::byte byte) { return byte != std::byte{0}; });
        if (image.front.rend() - last > static_cast<std::ptrdiff_t>(end))
            continue; // some of the description is after a dataset
        image.front.resize(end);
        return image;
    }
}

// Written when everything else is on the disk.
std::string headerOf(const FileImage &image, std::uint64_t content) {
    const std::uint32_t sum = crc32Of(std::span<const std::byte>(image.front).subspan(headerBytes));
    return fmt::format(headerText, version, image.bytes, image.front.size(), sum) + fmt::format(contentText, content);
}

FileImage readImage(const DurableFile &file) {
    return readable(file.path(), [&] {
        const index bytes = file.size();
        return FileImage{bytes, checkedDescription(file, bytes)};
    });
}

// HDF5 reads from memory: bytes of values read as zeros and are never touched.
CheckpointContent contentOf(const FileImage &image, const std::string &path) {
    const HdfQuiet quiet;
    return readable(path, [&] {
        SparseImage memory(image);
        const HdfObject access = fileAccess();
        memory.use(access);
        const HdfObject opened(H5Fopen(noFile, H5F_ACC_RDONLY, access.get()), H5Fclose, "opening it");
        return contentIn(opened, image.bytes);
    });
}

// The header has checksums of the description and of the content: files with equal headers are equal.
std::uint64_t identityOf(const DurableFile &file) {
    const index bytes = file.size();
    const std::vector<std::byte> front = headerBytesOf(file, bytes);
    ContentHash hash;
    hash.add(static_cast<std::uint64_t>(bytes));
    hash.addBytes(front.data(), front.size());
    return hash.value();
}

bool hasHdf5() noexcept { return true; }

} // namespace DNDS::Detail
