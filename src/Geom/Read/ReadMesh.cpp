#include "DNDS/Geom/Read/ReadMesh.hpp"

#include "DNDS/Geom/File/MeshFile.hpp"
#include "DNDS/Geom/Gmsh/GmshReader.hpp"
#include "DNDS/Geom/Su2/Su2Reader.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace DNDS::Geom {

namespace {

using namespace std::string_view_literals;

constexpr std::size_t lookedAt = 1 << 16; // comments may come first

/// SU2 has no magic number: the first word outside comments is a keyword with '='. Programs put keywords of their own
/// before the mesh's.
bool looksLikeSu2(std::string_view text) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
        if (line.empty() || line[0] == '%')
            continue;
        const std::size_t word =
            line.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
        const std::size_t sign = line.find_first_not_of(" \t", word);
        return word > 0 && sign != std::string_view::npos && line[sign] == '=';
    }
    return false;
}

/// What a file of no known format is, and what to do with it.
struct OtherContent {
    std::string_view begin;
    std::string_view advice;
};

constexpr std::string_view vtkHdfGroup = "VTKHDF";

constexpr std::array otherContents{
    OtherContent{"\xef\xbb\xbf"sv, "it begins with a byte order mark; save it as text without one"sv},
    OtherContent{"\xff\xfe"sv, "it is text in UTF-16; save it as ASCII or UTF-8"sv},
    OtherContent{"\xfe\xff"sv, "it is text in UTF-16; save it as ASCII or UTF-8"sv},
    OtherContent{"\x1f\x8b"sv, "it is compressed (gzip); unpack it"sv},
    OtherContent{"BZh"sv, "it is compressed (bzip2); unpack it"sv},
    OtherContent{"\3757zXZ"sv, "it is compressed (xz); unpack it"sv},
    OtherContent{"PK\x03\x04"sv, "it is compressed (zip); unpack it"sv},
    OtherContent{"# vtk DataFile"sv, "it is a VTK file; convert it to CGNS, Gmsh or SU2, for example with meshio"sv},
    OtherContent{"<VTKFile"sv, "it is a VTK file; convert it to CGNS, Gmsh or SU2, for example with meshio"sv},
    OtherContent{"<?xml"sv, "it is XML; convert it to CGNS, Gmsh or SU2, for example with meshio"sv},
    OtherContent{"CDF"sv,
                 "it is a NetCDF file; if it is Exodus, convert it to CGNS, Gmsh or SU2, for example with meshio"sv},
    OtherContent{"solid "sv, "it is a surface in STL, which has no cells"sv},
    OtherContent{vtkHdfGroup,
                 "it is a VTKHDF file of results; give the mesh that they were computed on"sv}, // within HDF5
};

struct Recognized {
    MeshFormat format = MeshFormat::Unknown;
    std::uint8_t other = otherContents.size(); ///< of otherContents, of an unknown format
    bool empty = false;

    std::string advice() const {
        if (empty)
            return ": it is empty";
        return other < otherContents.size() ? fmt::format(": {}", otherContents[other].advice) : std::string();
    }
};

/// Whether the root group of an HDF5 file, whose names stand near its begin, is that of VTK.
bool isVtkHdf(std::string_view first) {
    return first.find(vtkHdfGroup) != std::string_view::npos &&
           first.find("CGNSLibraryVersion") == std::string_view::npos;
}

/// Collective: rank 0 reads.
Recognized recognize(CommunicatorView comm, const std::string &path) {
    Recognized file;
    comm.guarded([&] {
        if (comm.rank() != 0)
            return;
        std::vector<char> bytes(lookedAt);
        const MeshFile opened(path);
        const std::string_view first{bytes.data(), opened.read(0, bytes.data(), bytes.size())};
        file.format = meshFormatOf(first);
        if (file.format == MeshFormat::CgnsHdf5 && isVtkHdf(first))
            file.format = MeshFormat::Unknown;
        const auto *const other = std::ranges::find_if(otherContents, [&](const OtherContent &each) {
            return first.starts_with(each.begin) || (each.begin == vtkHdfGroup && isVtkHdf(first));
        });
        file.other = static_cast<std::uint8_t>(other - otherContents.begin());
        file.empty = first.empty();
    });
    comm.broadcast(file);
    return file;
}

} // namespace

MeshFormat meshFormatOf(std::string_view firstBytes) {
    if (firstBytes.starts_with("\x89HDF\r\n\x1a\n"sv))
        return MeshFormat::CgnsHdf5;
    if (firstBytes.substr(std::min<std::size_t>(4, firstBytes.size())).starts_with("ADF Database Version"sv))
        return MeshFormat::CgnsAdf;
    const std::size_t begin = firstBytes.find_first_not_of(" \t\r\n");
    if (begin != std::string_view::npos && firstBytes[begin] == '$' && begin + 1 < firstBytes.size() &&
        std::isalpha(static_cast<unsigned char>(firstBytes[begin + 1])) != 0)
        return MeshFormat::Gmsh; // comments may come before $MeshFormat
    return looksLikeSu2(firstBytes) ? MeshFormat::Su2 : MeshFormat::Unknown;
}

MeshFormat meshFormat(CommunicatorView comm, const std::string &path) { return recognize(comm, path).format; }

SourceMesh readMesh(CommunicatorView comm, const std::string &path, const CgnsOptions &cgns) {
    const Doing doing("readMesh of", path);
    return failTogether(comm, [&]() -> SourceMesh {
        requireSameOptions(comm, cgns);
        const Recognized file = recognize(comm, path);
        switch (file.format) {
        case MeshFormat::Gmsh:
            DNDS_CHECK(
                cgns.base.empty(), ArgumentError,
                "{} is a Gmsh file, which has no '{}': a base (CgnsOptions::base, dnds-mesh --base) is one of a CGNS "
                "file, or a zone of an SU2 file",
                path, cgns.base);
            return readGmsh(comm, path);
        case MeshFormat::Su2:
            return readSu2Zone(comm, path, cgns.base);
        case MeshFormat::CgnsHdf5:
        case MeshFormat::CgnsAdf:
            return readCgns(comm, path, cgns);
        case MeshFormat::Unknown:
            break;
        }
        throw DataError(
            fmt::format("{} is not a mesh file of a known format (CGNS, Gmsh, SU2){}", path, file.advice()));
    });
}

} // namespace DNDS::Geom
