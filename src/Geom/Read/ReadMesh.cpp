#include "DNDS/Geom/Read/ReadMesh.hpp"

#include "DNDS/Geom/Cgns/TreeSource.hpp"
#include "DNDS/Geom/File/MeshFile.hpp"
#include "DNDS/Geom/Foam/FoamCase.hpp"
#include "DNDS/Geom/Foam/FoamReader.hpp"
#include "DNDS/Geom/Gmsh/GmshReader.hpp"
#include "DNDS/Geom/Read/OtherFiles.hpp"
#include "DNDS/Geom/Su2/Su2Reader.hpp"
#include "DNDS/Geom/Ugrid/UgridFile.hpp"
#include "DNDS/Geom/Ugrid/UgridReader.hpp"
#include "DNDS/Geom/Vtk/VtkHdfReader.hpp"
#include "DNDS/Geom/Vtk/VtuReader.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

namespace DNDS::Geom {

namespace {

using namespace std::string_view_literals;

constexpr std::size_t lookedAt = 1 << 16; // room for leading comments

/// SU2 has no magic number: the first word outside comments is a keyword with '='. Programs put keywords of their own
/// before the mesh's.
bool looksLikeSu2(std::string_view text) {
    const std::string_view line = nextLine(text, '%');
    const std::size_t word = line.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
    const std::size_t sign = line.find_first_not_of(" \t", word);
    return word > 0 && sign != std::string_view::npos && line[sign] == '=';
}

/// Files of OpenFOAM begin with a dictionary FoamFile, most of them after a banner in a comment.
bool looksLikeFoam(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    return text.starts_with("FoamFile") ||
           (text.starts_with("/*") && text.substr(0, 4096).find("\nFoamFile") != std::string_view::npos);
}

struct Recognized {
    MeshFormat format = MeshFormat::Unknown;
    std::string other; ///< unknown format: its name, if known, and advice
};

/// Collective: rank 0 reads.
/// By content, since names lie. HDF5 files need a look at the names in their root: CGNS and VTKHDF are HDF5, as are
/// many others.
/// O(1): 64 KiB of the file and, of HDF5 files, the names in the root. Only rank 0 touches the file, which spares
/// the metadata server.
Recognized recognize(CommunicatorView comm, const std::string &path) {
    Recognized file;
    std::vector<std::string> other(1);
    comm.guarded([&] {
        if (comm.rank() != 0)
            return;
        if (Foam::isFoamCase(path)) {
            file.format = MeshFormat::OpenFoam;
            return;
        }
        // One read of the begin serves all tests.
        std::vector<char> bytes(lookedAt);
        const MeshFile opened(path);
        const std::string_view first{bytes.data(), opened.read(0, bytes.data(), bytes.size())};
        file.format = meshFormatOf(first);
        if (file.format == MeshFormat::Unknown && isUgrid(path, first, opened.size()))
            file.format = MeshFormat::Ugrid;
        const std::vector<std::string> names =
            file.format == MeshFormat::CgnsHdf5 ? Cgns::hdf5Names(path) : std::vector<std::string>();
        if (std::ranges::find(names, "VTKHDF") != names.end() &&
            std::ranges::find(names, "CGNSLibraryVersion") == names.end())
            file.format = MeshFormat::VtkHdf;
        else if (file.format == MeshFormat::Unknown || !names.empty())
            other[0] = describeOtherFile(first, opened.size(), names);
        if (!other[0].empty())
            file.format = MeshFormat::Unknown;
    });
    comm.broadcast(file.format);
    broadcastStrings(comm, other);
    file.other = std::move(other[0]);
    return file;
}

} // namespace

/// From the most to the least certain signature: SU2 has none and comes last.
MeshFormat meshFormatOf(std::string_view firstBytes) {
    if (firstBytes.starts_with("\x89HDF\r\n\x1a\n"sv))
        return MeshFormat::CgnsHdf5;
    if (firstBytes.substr(std::min<std::size_t>(4, firstBytes.size())).starts_with("ADF Database Version"sv))
        return MeshFormat::CgnsAdf;
    if (looksLikeFoam(firstBytes))
        return MeshFormat::OpenFoam;
    if (isUgrid("", firstBytes, 0))
        return MeshFormat::Ugrid;
    if (isVtu(firstBytes))
        return MeshFormat::Vtu;
    if (!describeOtherFile(firstBytes, 0, {}).empty())
        return MeshFormat::Unknown;
    const std::size_t begin = firstBytes.find_first_not_of(" \t\r\n");
    if (begin != std::string_view::npos && firstBytes[begin] == '$' && begin + 1 < firstBytes.size() &&
        std::isalpha(static_cast<unsigned char>(firstBytes[begin + 1])) != 0)
        return MeshFormat::Gmsh; // comments may precede $MeshFormat
    return looksLikeSu2(firstBytes) ? MeshFormat::Su2 : MeshFormat::Unknown;
}

// Names of other formats are dropped here.
MeshFormat meshFormat(CommunicatorView comm, const std::string &path) { return recognize(comm, path).format; }

// Two collective steps before the reader: options are compared, and rank 0's format is broadcast, so that all ranks
// call the same reader.
SourceMesh readMesh(CommunicatorView comm, const std::string &path, const CgnsOptions &cgns) {
    const ActivityScope activity("readMesh of", path);
    return failTogether(comm, [&]() -> SourceMesh {
        requireSameOptions(comm, cgns);
        const Recognized file = recognize(comm, path);
        // A base that is ignored would be a wrong mesh.
        const auto requireNoBase = [&](std::string_view format) {
            DNDS_CHECK(cgns.base.empty(), ArgumentError,
                       "{} is a {} file, which has no '{}': a base (CgnsOptions::base, dnds-mesh --base) is one of a "
                       "CGNS file, or a zone of an SU2 file",
                       path, format, cgns.base);
        };
        switch (file.format) {
        case MeshFormat::Gmsh:
            requireNoBase("Gmsh");
            return readGmsh(comm, path);
        case MeshFormat::VtkHdf:
            requireNoBase("VTKHDF");
            return readVtkHdf(comm, path, cgns.fields);
        case MeshFormat::Vtu:
            requireNoBase("VTU");
            return readVtu(comm, path, cgns.fields);
        case MeshFormat::Ugrid:
            requireNoBase("UGRID");
            return readUgrid(comm, path);
        case MeshFormat::Su2:
            return readSu2(comm, path, cgns.base);
        case MeshFormat::CgnsHdf5:
        case MeshFormat::CgnsAdf:
            return readCgns(comm, path, cgns);
        case MeshFormat::OpenFoam:
            return readFoam(comm, path, cgns.base);
        case MeshFormat::Unknown:
            break;
        }
        throw DataError(
            fmt::format("{} is not a mesh file of a known format (CGNS, Gmsh, OpenFOAM, SU2, UGRID, VTKHDF, VTU){}{}",
                        path, file.other.empty() ? "" : ": ", file.other));
    });
}

} // namespace DNDS::Geom
