#include "DNDS/GridFile/NetcdfWriterFile.hpp"

#include "DNDS/GridFile/ElementConversion.hpp"
#include "DNDS/GridFile/NetcdfSpace.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Serialize/DurableFile.hpp"

#include <netcdf_par.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace DNDS {

namespace {

/// Half of the 2^32 - 4 bytes that the format allows.
constexpr index maxCdf2Bytes = (index{1} << 31) - 4; ///< limit of a variable, or of one of its records

/// A variable or attribute of a type that CDF-2 lacks, as text; else empty. The first six types are those of all
/// classic formats.
std::string beyondCdf2(const NetcdfContent &content) {
    const auto isWide = [](ElementKind kind) {
        return kind != ElementKind::Opaque && Detail::netcdfType(kind) > NC_DOUBLE;
    };
    const auto wideOf = [&](const std::vector<NetcdfAttribute> &attributes) -> std::string {
        const auto wide = std::ranges::find_if(attributes, isWide, &NetcdfAttribute::kind);
        return wide == attributes.end()
                   ? ""
                   : fmt::format("the attribute '{}' is {}", wide->name, elementKindName(wide->kind));
    };
    for (const NetcdfVariable &variable : content.variables) {
        if (isWide(variable.kind))
            return fmt::format("'{}' is {}", variable.name, variable.type);
        if (std::string wide = wideOf(variable.attributes); !wide.empty())
            return wide + fmt::format(" of '{}'", variable.name);
    }
    return wideOf(content.attributes);
}

/// Puts an attribute; numbers in its own kind.
/// Text has no length limit; numbers are converted one by one, as the list's type is the widest.
int putAttribute(int file, int variable, const NetcdfAttribute &attribute) {
    const char *name = attribute.name.c_str();
    if (const auto *text = std::get_if<std::string>(&attribute.value))
        return nc_put_att_text(file, variable, name, text->size(), text->data());
    std::vector<std::byte> bytes;
    const std::size_t width = Detail::bytesOf(attribute.kind);
    for (std::size_t k = 0;; k++) {
        const auto number = Detail::packedNumber(attribute, k, attribute.kind);
        if (!number)
            break;
        bytes.insert(bytes.end(), number->begin(), number->begin() + static_cast<std::ptrdiff_t>(width));
    }
    return nc_put_att(file, variable, name, Detail::netcdfType(attribute.kind), bytes.size() / width, bytes.data());
}

} // namespace

// Errors come from here, before there is a file.
void NetcdfWriter::File::checkAttribute(const std::string &of, const NetcdfAttribute &attribute) const {
    const std::size_t length = std::visit([](const auto &value) { return value.size(); }, attribute.value);
    for (std::size_t k = 0; k < length && !std::holds_alternative<std::string>(attribute.value); k++)
        DNDS_CHECK(Detail::packedNumber(attribute, k, attribute.kind).has_value(), LayoutError,
                   "{}: number {} of the attribute '{}' of {} does not fit its type {}", path, k, attribute.name, of,
                   elementKindName(attribute.kind));
}

// The same declaration again is fine.
void NetcdfWriter::File::declare(NetcdfDimension dimension) {
    requireDeclaring();
    DNDS_CHECK(dimension.length > 0 || dimension.unlimited, ArgumentError,
               "{}: dimension '{}' of {} elements: NetCDF has none below 1", path, dimension.name, dimension.length);
    for (const NetcdfDimension &known : content.dimensions) {
        if (known.name != dimension.name)
            continue;
        DNDS_CHECK(known.unlimited == dimension.unlimited && (known.unlimited || known.length == dimension.length),
                   ArgumentError, "{}: dimension '{}' was declared with {} elements, now {}", path, known.name,
                   known.length, dimension.length);
        return;
    }
    content.dimensions.push_back(std::move(dimension));
}

// A fill value is stored in the variable's type, as the library requires.
void NetcdfWriter::File::declare(NetcdfVariable variable) {
    requireDeclaring();
    (void)Detail::netcdfType(variable.kind);
    DNDS_CHECK(!content.has(variable.name), ArgumentError, "{}: variable '{}' is declared twice", path, variable.name);
    for (std::size_t d = 0; d < variable.dimensions.size(); d++)
        DNDS_CHECK(!variable.dimensions[d].unlimited || d == 0 || options.format == NetcdfFormat::Netcdf4,
                   ArgumentError, "{}: the unlimited dimension of '{}' must be its first", path, variable.name);
    if (const NetcdfAttribute *fill = variable.attribute("_FillValue")) {
        const auto number = Detail::packedNumber(*fill, 0, variable.kind);
        if (!number) {
            notes.push_back(fmt::format("_FillValue of '{}' does not fit its type {}: dropped", variable.name,
                                        elementKindName(variable.kind)));
            variable.attributes.erase(variable.attributes.begin() + (fill - variable.attributes.data()));
        } else {
            variable.attributes[static_cast<std::size_t>(fill - variable.attributes.data())].kind = variable.kind;
        }
    }
    for (const NetcdfAttribute &attribute : variable.attributes)
        checkAttribute(fmt::format("'{}'", variable.name), attribute);
    variable.type = elementKindName(variable.kind);
    content.variables.push_back(std::move(variable));
}

// The simplest format that can hold the file; `notes` say why.
NetcdfFormat NetcdfWriter::File::chooseFormat() {
    if (options.format != NetcdfFormat::Automatic)
        return options.format;
    const auto choose = [&](NetcdfFormat format, const char *name, const std::string &why) {
        notes.push_back(fmt::format("format {}: {}", name, why));
        return format;
    };
    if (options.deflate > 0)
        return choose(NetcdfFormat::Netcdf4, "NetCDF-4", "it is compressed");
    if (std::ranges::count(content.dimensions, true, &NetcdfDimension::unlimited) > 1)
        return choose(NetcdfFormat::Netcdf4, "NetCDF-4", "it has several unlimited dimensions");
    if (const std::string wide = beyondCdf2(content); !wide.empty())
        return choose(NetcdfFormat::Cdf5, "CDF-5", wide);
    for (const NetcdfVariable &variable : content.variables) {
        index bytes = static_cast<index>(Detail::bytesOf(variable.kind));
        for (const NetcdfDimension &dimension : variable.dimensions)
            // Saturates just beyond the limit; of record variables the size of one record counts.
            bytes = dimension.unlimited || dimension.length == 0 ? bytes
                    : bytes > maxCdf2Bytes / dimension.length    ? maxCdf2Bytes + 1
                                                                 : bytes * dimension.length;
        if (bytes > maxCdf2Bytes)
            return choose(NetcdfFormat::Cdf5, "CDF-5", fmt::format("'{}' has 2 GiB or more", variable.name));
    }
    return choose(NetcdfFormat::Cdf2, "CDF-2", "every reader knows it, and no variable has 2 GiB");
}

void NetcdfWriter::File::checkFormat(NetcdfFormat format) const {
    DNDS_CHECK(options.deflate >= 0 && options.deflate <= 9, ArgumentError, "{}: deflate {} is not 0 to 9", path,
               options.deflate);
    DNDS_CHECK(options.deflate == 0 || format == NetcdfFormat::Netcdf4, ArgumentError,
               "{}: classic files are not compressed: use NetCDF-4", path);
    if (const std::string wide = format == NetcdfFormat::Cdf2 ? beyondCdf2(content) : ""; !wide.empty())
        throw LayoutError(fmt::format("{}: {}, which CDF-2 lacks: use CDF-5 or NetCDF-4", path, wide));
}

// Rank 0 checks the file first, and whether it can be written.
void NetcdfWriter::File::openExisting() {
    onRankZero(comm, [&] {
        Detail::checkNetcdfFile(path);
        (void)DurableFile::forWriting(path);
    });
    comm.beforeCollective();
    const int status = nc_open_par(path.c_str(), NC_WRITE, comm.handle(), MPI_INFO_NULL, &id);
    comm.guarded([&] { Detail::requireNetcdf(status, path, "open it for writing"); });
    comm.guarded([&] {
        content = Detail::readNetcdfContent(id, path, places, notes);
        writeTogether(content.format == "NetCDF-4");
    });
}

/// Variables are written by all ranks together from now on.
void NetcdfWriter::File::writeTogether(bool hdf) {
    for (const Detail::NetcdfPlace &place : places)
        Detail::requireNetcdf(nc_var_par_access(place.group, place.variable, NC_COLLECTIVE), path, "write together");
    for (const NetcdfVariable &variable : content.variables)
        if (hdf)
            extents.push_back(variable.shape());
        else // without records nothing is filled
            writtenEnds.push_back(!variable.dimensions.empty() && variable.dimensions[0].unlimited
                                      ? variable.dimensions[0].length
                                      : Detail::endless);
}

// The library refuses to compress scalars.
int NetcdfWriter::File::defineVariable(const NetcdfVariable &variable, const std::vector<int> &dimensions) {
    int number = -1;
    // The place is noted even after a failure, to keep the lists equally long.
    int status = nc_def_var(id, variable.name.c_str(), Detail::netcdfType(variable.kind),
                            static_cast<int>(dimensions.size()), dimensions.data(), &number);
    places.push_back({id, number});
    if (status == NC_NOERR && options.deflate > 0 && !dimensions.empty())
        status = nc_def_var_deflate(id, number, 1, 1, options.deflate);
    for (const NetcdfAttribute &attribute : variable.attributes)
        if (status == NC_NOERR)
            status = putAttribute(id, number, attribute);
    return status;
}

/// Makes the same calls on all ranks, so that failures are the same, too.
/// After an error the remaining calls are skipped on all ranks alike, as definitions are collective in NetCDF-4.
int NetcdfWriter::File::defineAll() {
    int status = NC_NOERR;
    std::vector<int> ids;
    places.clear(); // of an attempt that failed
    for (const NetcdfDimension &dimension : content.dimensions) {
        ids.push_back(-1);
        if (status == NC_NOERR)
            status = nc_def_dim(id, dimension.name.c_str(),
                                dimension.unlimited ? NC_UNLIMITED : static_cast<std::size_t>(dimension.length),
                                &ids.back());
    }
    for (const NetcdfVariable &variable : content.variables) {
        std::vector<int> dimensions;
        for (const NetcdfDimension &used : variable.dimensions) {
            const auto found = std::ranges::find(content.dimensions, used.name, &NetcdfDimension::name);
            dimensions.push_back(ids[toSize(found - content.dimensions.begin())]);
        }
        if (status == NC_NOERR)
            status = defineVariable(variable, dimensions);
    }
    for (const NetcdfAttribute &attribute : content.attributes)
        if (status == NC_NOERR)
            status = putAttribute(id, NC_GLOBAL, attribute);
    return status;
}

// Space is reserved before the library writes: a full disk is then found here, on rank 0, and not in the middle of a
// collective call.
// Each library call is followed by an agreement, so that an error on one rank is thrown by all and none enters the next
// collective call alone.
void NetcdfWriter::File::create(NetcdfFormat format) {
    const bool hdf = format == NetcdfFormat::Netcdf4;
    const index needed = hdf ? Detail::netcdf4BytesAtStart(content, options.deflate) : 0;
    onRankZero(comm, [&] {
        const DurableFile file = DurableFile::create(temporary, 0); // reports why it is impossible
        // Without enough space no file must remain.
        const OnFailure undo([&] { std::remove(temporary.c_str()); });
        file.reserve(needed);
    });
    const int mode = NC_CLOBBER | (hdf ? NC_NETCDF4 : format == NetcdfFormat::Cdf5 ? NC_64BIT_DATA : NC_64BIT_OFFSET);
    comm.beforeCollective();
    int status = nc_create_par(temporary.c_str(), mode, comm.handle(), MPI_INFO_NULL, &id);
    comm.guarded([&] { Detail::requireNetcdf(status, path, "create it"); });
    {
        // On all ranks: closing would write data that may not fit on the disk.
        const OnFailure undo([&] { nc_abort(std::exchange(id, -1)); });
        comm.guarded([&] {
            Detail::requireNetcdf(defineAll(), path, "declare what is written");
            if (hdf && comm.rank() == 0) // creating it released the reservation
                DurableFile::forWriting(temporary).reserveBehind(needed);
        });
    }
    status = nc_enddef(id);
    comm.guarded([&] { Detail::requireNetcdf(status, path, "write the header"); });
    comm.guarded([&] {
        writeTogether(hdf);
        if (comm.rank() == 0)
            Detail::makeRoomInNetcdf(temporary, 0);
    });
}

} // namespace DNDS
