#include "DNDS/GridFile/NetcdfCalls.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/GridFile/ClassicHeader.hpp"
#include "DNDS/GridFile/ElementConversion.hpp"
#include "DNDS/Serialize/DurableFile.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace DNDS::Detail {

namespace {

/// Element kinds and the library's types.
constexpr std::array<std::pair<ElementKind, nc_type>, 10> numberTypes{{{ElementKind::Int8, NC_BYTE},
                                                                       {ElementKind::UInt8, NC_UBYTE},
                                                                       {ElementKind::Int16, NC_SHORT},
                                                                       {ElementKind::UInt16, NC_USHORT},
                                                                       {ElementKind::Int32, NC_INT},
                                                                       {ElementKind::UInt32, NC_UINT},
                                                                       {ElementKind::Int64, NC_INT64},
                                                                       {ElementKind::UInt64, NC_UINT64},
                                                                       {ElementKind::Float32, NC_FLOAT},
                                                                       {ElementKind::Float64, NC_DOUBLE}}};

/// Describes a file, groups included, which classic files do not have. Depth first over groups, as the NetCDF-4 data
/// model nests them. Names of variables carry the path of their group; places keep group and variable ids, which are
/// unique within a group only.
/// O(dimensions + variables + attributes), no values of variables. Every rank reads the description by itself.
class ContentReader {
  public:
    ContentReader(const std::string &path, std::vector<NetcdfPlace> &places, std::vector<std::string> &notes)
        : path_(path), places_(places), notes_(notes) {}

    NetcdfContent read(int file) {
        int format = 0;
        require(nc_inq_format(file, &format), "say its format");
        content_.format = format == NC_FORMAT_CLASSIC        ? "CDF-1"
                          : format == NC_FORMAT_64BIT_OFFSET ? "CDF-2"
                          : format == NC_FORMAT_64BIT_DATA   ? "CDF-5"
                                                             : "NetCDF-4";
        content_.attributes = attributesOf(file, NC_GLOBAL, "the file");
        readGroup(file, "");
        return std::move(content_);
    }

  private:
    void require(int status, const std::string &what) const { requireNetcdf(status, path_, what); }

    // Dimensions are known in the group and in those within it; ids are unique in the file.
    void readGroup(int group, const std::string &prefix) {
        // The library's lists are asked for twice: for the length, then for the ids.
        const auto list = [&](const auto &inquire, const char *what) {
            int count = 0;
            require(inquire(group, &count, nullptr), what);
            std::vector<int> ids(static_cast<std::size_t>(count));
            require(inquire(group, &count, ids.data()), what);
            return ids;
        };
        const std::vector<int> unlimited = list(nc_inq_unlimdims, "list unlimited dimensions");
        const auto dimensionsOf = [](int of, int *count, int *ids) { return nc_inq_dimids(of, count, ids, 0); };
        for (const int id : list(dimensionsOf, "list dimensions")) {
            std::array<char, NC_MAX_NAME + 1> name{};
            std::size_t length = 0;
            require(nc_inq_dim(group, id, name.data(), &length), "describe a dimension");
            dimensions_[id] = {name.data(), static_cast<index>(length),
                               std::ranges::find(unlimited, id) != unlimited.end()};
            content_.dimensions.push_back(dimensions_[id]);
        }
        // Variables after dimensions: they refer to those of this group and of groups around it.
        for (const int id : list(nc_inq_varids, "list variables"))
            readVariable(group, id, prefix);
        for (const int id : list(nc_inq_grps, "list groups")) {
            std::array<char, NC_MAX_NAME + 1> name{};
            require(nc_inq_grpname(id, name.data()), "name a group");
            readGroup(id, prefix + name.data() + "/");
        }
    }

    // A place for each variable, in the order of `content_.variables`.
    void readVariable(int group, int id, const std::string &prefix) {
        std::array<char, NC_MAX_NAME + 1> name{};
        nc_type type = NC_NAT;
        int dims = 0;
        require(nc_inq_var(group, id, name.data(), &type, &dims, nullptr, nullptr), "describe a variable");
        std::vector<int> ids(static_cast<std::size_t>(dims));
        require(nc_inq_vardimid(group, id, ids.data()), "describe a variable");
        NetcdfVariable variable;
        variable.name = prefix + name.data();
        variable.kind = kindOfNetcdf(type);
        variable.type = variable.kind != ElementKind::Opaque ? std::string(elementKindName(variable.kind))
                        : type == NC_CHAR                    ? "char"
                        : type == NC_STRING                  ? "string"
                                                             : "user-defined";
        for (const int dimension : ids) {
            const auto known = dimensions_.find(dimension);
            DNDS_CHECK(known != dimensions_.end(), DataError,
                       "{} is damaged: variable '{}' has dimension {}, which it "
                       "does not have",
                       path_, variable.name, dimension);
            variable.dimensions.push_back(known->second);
        }
        variable.attributes = attributesOf(group, id, variable.name);
        content_.variables.push_back(std::move(variable));
        places_.push_back({group, id});
    }

    std::vector<NetcdfAttribute> attributesOf(int group, int variable, const std::string &owner) {
        int count = 0;
        require(nc_inq_varnatts(group, variable, &count), "count attributes");
        std::vector<NetcdfAttribute> attributes;
        for (int k = 0; k < count; k++) {
            NetcdfAttribute attribute;
            std::array<char, NC_MAX_NAME + 1> name{};
            require(nc_inq_attname(group, variable, k, name.data()), "name an attribute");
            attribute.name = name.data();
            if (readAttribute(group, variable, attribute))
                attributes.push_back(std::move(attribute));
            else
                notes_.push_back(
                    fmt::format("attribute {} of {} is neither text nor numbers: left out", attribute.name, owner));
        }
        return attributes;
    }

    // Texts, numbers of any type. False for lists of strings and for user-defined types.
    bool readAttribute(int group, int variable, NetcdfAttribute &attribute) {
        const char *name = attribute.name.c_str();
        nc_type type = NC_NAT;
        std::size_t length = 0;
        require(nc_inq_att(group, variable, name, &type, &length), "describe attribute " + attribute.name);
        attribute.kind = kindOfNetcdf(type);
        if (type == NC_CHAR) {
            std::string text(length, '\0');
            require(nc_get_att_text(group, variable, name, text.data()), "read attribute " + attribute.name);
            // Programs in C often write the terminating zero, too.
            while (!text.empty() && text.back() == '\0')
                text.pop_back();
            attribute.value = std::move(text);
            return true;
        }
        // A single string of NetCDF-4 counts as text.
        if (type == NC_STRING && length == 1) {
            char *text = nullptr;
            require(nc_get_att_string(group, variable, name, &text), "read attribute " + attribute.name);
            attribute.value = std::string(text == nullptr ? "" : text);
            nc_free_string(1, &text);
            return true;
        }
        if (attribute.kind == ElementKind::Opaque)
            return false;
        // The library converts to the widest type of the same kind.
        int status = NC_NOERR;
        if (isFloating(attribute.kind)) {
            std::vector<real> numbers(length);
            status = nc_get_att_double(group, variable, name, numbers.data());
            attribute.value = std::move(numbers);
        } else if (attribute.kind == ElementKind::UInt64) {
            std::vector<unsigned long long> numbers(length);
            status = nc_get_att_ulonglong(group, variable, name, numbers.data());
            attribute.value = std::vector<std::uint64_t>(numbers.begin(), numbers.end());
        } else {
            std::vector<long long> numbers(length);
            status = nc_get_att_longlong(group, variable, name, numbers.data());
            attribute.value = std::vector<std::int64_t>(numbers.begin(), numbers.end());
        }
        require(status, "read attribute " + attribute.name);
        return true;
    }

    const std::string &path_;
    std::vector<NetcdfPlace> &places_;
    std::vector<std::string> &notes_;
    /// By id, from all groups read so far: variables refer to those of enclosing groups, too.
    std::map<int, NetcdfDimension> dimensions_;
    NetcdfContent content_;
};

} // namespace

// `what` completes "NetCDF cannot": "open it".
void requireNetcdf(int status, const std::string &path, const std::string &what) {
    DNDS_CHECK(status == NC_NOERR, DataError, "{}: NetCDF cannot {}: {}", path, what, nc_strerror(status));
}

// The tables are short: searches.
nc_type netcdfType(ElementKind kind) {
    for (const auto &[ours, theirs] : numberTypes)
        if (ours == kind)
            return theirs;
    throw LayoutError(fmt::format("NetCDF files hold numbers, and {} is none", elementKindName(kind)));
}

ElementKind kindOfNetcdf(nc_type type) {
    for (const auto &[ours, theirs] : numberTypes)
        if (theirs == type)
            return ours;
    return ElementKind::Opaque;
}

NetcdfContent readNetcdfContent(int file, const std::string &path, std::vector<NetcdfPlace> &places,
                                std::vector<std::string> &notes) {
    return ContentReader(path, places, notes).read(file);
}

// The library cannot be trusted with damaged classic files; HDF5 checks its own.
void checkNetcdfFile(const std::string &path) {
    const DurableFile file = DurableFile::forReading(path);
    const index bytes = file.size();
    const ReadBytesAt read = [&](index place, std::span<std::byte> to) { file.readAt(place, to); };
    const NetcdfKind kind = netcdfKindOf(read, bytes);
    DNDS_CHECK(kind != NetcdfKind::Unknown, DataError,
               "{} is no NetCDF file: it starts neither as a classic one (CDF) nor as NetCDF-4 (HDF5)", path);
    if (kind == NetcdfKind::Classic)
        checkClassicFile(path, bytes, read);
}

// Closed before it is opened for writing.
// Classic files have a fixed layout, so the header tells the size of the file with any number of records. O(header).
void makeRoomInNetcdf(const std::string &path, index records) {
    index needed = 0;
    {
        const DurableFile file = DurableFile::forReading(path);
        const ReadBytesAt read = [&](index place, std::span<std::byte> to) { file.readAt(place, to); };
        if (netcdfKindOf(read, file.size()) == NetcdfKind::Classic)
            needed = classicFileBytes(path, file.size(), read, records);
    }
    if (needed > 0)
        DurableFile::forWriting(path).reserve(needed);
}

} // namespace DNDS::Detail
