// Copies the variables of a NetCDF file as they are, and their values as doubles with masks, for check_netcdf.py.
//
//   copy_netcdf INPUT COPY VALUES
//
// Variables of groups "g/v" become "g_v". Prints the names that hold no numbers, which are left out.
#include "DNDS/GridFile/Netcdf.hpp"
#include "DNDS/Mpi/RunMain.hpp"

#include <algorithm>
#include <cstdio>

namespace {

using DNDS::index;

struct Part {
    std::vector<index> start;
    std::vector<index> count;
    index elements = 1;
};

/// This rank's part, cut along the longest dimension.
Part partOf(const std::vector<index> &shape, const DNDS::CommunicatorView &comm) {
    Part part{std::vector<index>(shape.size(), 0), shape, 1};
    if (!shape.empty()) {
        const auto cut = static_cast<std::size_t>(std::max_element(shape.begin(), shape.end()) - shape.begin());
        part.start[cut] = shape[cut] * comm.rank() / comm.size();
        part.count[cut] = shape[cut] * (comm.rank() + 1) / comm.size() - part.start[cut];
    }
    for (const index n : part.count)
        part.elements *= n;
    return part;
}

DNDS::NetcdfVariable renamed(DNDS::NetcdfVariable variable) {
    std::replace(variable.name.begin(), variable.name.end(), '/', '_');
    return variable;
}

std::vector<std::string> dimensionsOf(const DNDS::NetcdfVariable &variable) {
    std::vector<std::string> names;
    for (const DNDS::NetcdfDimension &dimension : variable.dimensions)
        names.push_back(dimension.name);
    return names;
}

bool hasNumbers(const DNDS::NetcdfVariable &variable) { return variable.kind != DNDS::ElementKind::Opaque; }

void copyRaw(const DNDS::CommunicatorView &comm, const DNDS::NetcdfReader &in, const std::string &path) {
    DNDS::NetcdfWriter out(comm, path);
    for (const DNDS::NetcdfAttribute &attribute : in.content().attributes)
        out.attribute(attribute);
    for (const DNDS::NetcdfVariable &variable : in.content().variables)
        if (hasNumbers(variable))
            out.like(renamed(variable));
    for (const DNDS::NetcdfVariable &variable : in.content().variables) {
        if (!hasNumbers(variable)) {
            if (comm.rank() == 0)
                std::printf("without numbers: %s\n", variable.name.c_str());
            continue;
        }
        const Part part = partOf(variable.shape(), comm);
        std::vector<std::int64_t> memory(static_cast<std::size_t>(part.elements)); // wide enough for every type
        DNDS::Slab read = DNDS::slabOf(memory.data(), part.start, part.count);
        read.kind = variable.kind;
        in.read(variable.name, read, {.raw = true});
        DNDS::WrittenSlab written =
            DNDS::slabOf(static_cast<const std::int64_t *>(memory.data()), part.start, part.count);
        written.kind = variable.kind;
        out.write(renamed(variable).name, written, true);
    }
    out.close();
    if (comm.rank() == 0)
        for (const std::string &note : out.notes())
            std::printf("note: %s\n", note.c_str());
}

void copyValues(const DNDS::CommunicatorView &comm, const DNDS::NetcdfReader &in, const std::string &path) {
    DNDS::NetcdfWriter out(comm, path, {.format = DNDS::NetcdfFormat::Netcdf4});
    for (const DNDS::NetcdfDimension &dimension : in.content().dimensions)
        out.dimension(dimension.name, dimension.length);
    for (const DNDS::NetcdfVariable &variable : in.content().variables)
        if (hasNumbers(variable)) {
            out.variable(renamed(variable).name, DNDS::ElementKind::Float64, dimensionsOf(variable));
            out.variable(renamed(variable).name + "_mask", DNDS::ElementKind::UInt8, dimensionsOf(variable));
        }
    for (const DNDS::NetcdfVariable &variable : in.content().variables) {
        if (!hasNumbers(variable))
            continue;
        const Part part = partOf(variable.shape(), comm);
        std::vector<double> memory(static_cast<std::size_t>(part.elements));
        std::vector<std::uint8_t> mask(memory.size());
        DNDS::Slab read = DNDS::slabOf(memory.data(), part.start, part.count);
        read.mask = mask.data();
        in.read(variable.name, read);
        const std::string name = renamed(variable).name;
        out.write(name, DNDS::slabOf(static_cast<const double *>(memory.data()), part.start, part.count), true);
        out.write(name + "_mask", DNDS::slabOf(static_cast<const std::uint8_t *>(mask.data()), part.start, part.count),
                  true);
    }
    out.close();
}

} // namespace

int main(int argc, char **argv) {
    return DNDS::runMain(argc, argv, [&](DNDS::CommunicatorView comm) {
        DNDS_CHECK(argc == 4, DNDS::ArgumentError, "{} arguments instead of INPUT COPY VALUES", argc - 1);
        const DNDS::NetcdfReader in(comm, argv[1]);
        copyRaw(comm, in, argv[2]);
        copyValues(comm, in, argv[3]);
    });
}
