#include "DNDS/GridFile/Slab.hpp"
#include "DNDS/GridFile/SlabChunks.hpp"
#include "DNDS/GridFile/VtkFields.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Serialize/Checkpoint.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace DNDS {

namespace {

constexpr index vtkBlockHeader = 8; ///< bytes: the length of the array that follows

// "Int8", "UInt8", ..., "Float64".
std::string vtkTypeName(ElementKind kind) {
    std::string name(elementKindName(kind)); // int8, uint8, ..., float64
    const std::size_t capitals = name.front() == 'u' ? 2 : 1;
    for (std::size_t i = 0; i < capitals; i++)
        name[i] = static_cast<char>(name[i] - 'a' + 'A');
    return name;
}

// Escapes the characters that end an attribute's value or begin markup.
std::string xmlText(const std::string &text) {
    std::string escaped;
    for (const char c : text)
        escaped += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
    return escaped;
}

/// The layout of the file. VTK's XML format for rectilinear grids with appended raw data (VTK file formats, "XML file
/// formats"): a header in text, then for each array its length in bytes as UInt64 and its values.
struct VtrPlan {
    std::string header;
    std::vector<index> places; ///< offsets of the blocks: fields, then coordinates
    std::vector<index> bytes;
    index end = 0;
};

constexpr const char *vtrEnd = "\n  </AppendedData>\n</VTKFile>\n";

// Offsets in the header count from its end, so that they do not depend on its length.
// Two passes: offsets relative to the appended data while the header grows, then all are shifted by its length.
VtrPlan planVtr(const std::array<std::vector<real>, 3> &points, const std::array<index, 3> &cells,
                std::span<const VtkGridField> fields) {
    VtrPlan plan;
    index offset = 0;
    const auto addArray = [&](ElementKind kind, const std::string &name, index components, index elements) {
        plan.header += fmt::format("        <DataArray type=\"{}\" Name=\"{}\" NumberOfComponents=\"{}\" "
                                   "format=\"appended\" offset=\"{}\"/>\n",
                                   vtkTypeName(kind), xmlText(name), components, offset);
        // Relative to the data until the header's length is known.
        plan.places.push_back(offset);
        plan.bytes.push_back(elements * components * static_cast<index>(Detail::bytesOf(kind)));
        offset += vtkBlockHeader + plan.bytes.back();
    };
    std::string extent;
    for (const std::vector<real> &axis : points)
        extent += fmt::format("{}0 {}", extent.empty() ? "" : " ", axis.size() - 1);
    plan.header =
        fmt::format("<?xml version=\"1.0\"?>\n<VTKFile type=\"RectilinearGrid\" version=\"1.0\" "
                    "byte_order=\"{}\" header_type=\"UInt64\">\n  <RectilinearGrid WholeExtent=\"{}\">\n"
                    "    <Piece Extent=\"{}\">\n      <CellData>\n",
                    std::endian::native == std::endian::little ? "LittleEndian" : "BigEndian", extent, extent);
    for (const VtkGridField &field : fields)
        addArray(field.kind, field.name, field.components, cells[0] * cells[1] * cells[2]);
    plan.header += "      </CellData>\n      <Coordinates>\n";
    for (std::size_t d = 0; d < 3; d++)
        addArray(ElementKind::Float64, std::string(1, static_cast<char>('x' + d)), 1,
                 static_cast<index>(points[d].size()));
    plan.header += "      </Coordinates>\n    </Piece>\n  </RectilinearGrid>\n  <AppendedData encoding=\"raw\">\n_";
    for (index &place : plan.places)
        place += static_cast<index>(plan.header.size());
    plan.end = offset + static_cast<index>(plan.header.size());
    return plan;
}

/// Writes everything except the fields' values.
void writeVtrFrame(const DurableFile &file, const VtrPlan &plan, const std::array<std::vector<real>, 3> &points) {
    file.writeAt(0, std::as_bytes(std::span(plan.header)));
    for (std::size_t k = 0; k < plan.places.size(); k++) {
        const auto length = static_cast<std::uint64_t>(plan.bytes[k]);
        file.writeAt(plan.places[k], std::as_bytes(std::span(&length, 1)));
    }
    for (std::size_t d = 0; d < 3; d++)
        file.writeAt(plan.places[plan.places.size() - 3 + d] + vtkBlockHeader, std::as_bytes(std::span(points[d])));
    file.writeAt(plan.end, std::as_bytes(std::span(std::string_view(vtrEnd))));
}

} // namespace

// The plan is the same on all ranks, which then write their boxes without further messages.
// Ranks write disjoint ranges of bytes: no locks, and one agreement before the file gets its name.
void writeVtkRectilinear(CommunicatorView comm, const std::string &path, const std::array<std::vector<real>, 3> &points,
                         std::span<const VtkGridField> fields) {
    const std::string temporary = path + ".part";
    std::array<index, 3> cells{};
    VtrPlan plan;
    comm.guarded([&] {
        for (std::size_t d = 0; d < 3; d++) {
            DNDS_CHECK(!points[d].empty(), ArgumentError, "{}: dimension {} has no point", path, d);
            // A flat dimension has one point and one layer of cells.
            cells[d] = std::max<index>(1, static_cast<index>(points[d].size()) - 1);
        }
    });
    Detail::requireSameFields(comm, path, cells, fields);
    comm.guarded([&] {
        Detail::checkVtkFields(path, cells, fields);
        plan = planVtr(points, cells, fields);
        if (comm.rank() == 0)
            (void)DurableFile::create(temporary, plan.end + static_cast<index>(std::string_view(vtrEnd).size()));
    });
    comm.guarded([&] {
        const DurableFile file = DurableFile::forWriting(temporary);
        if (comm.rank() == 0)
            writeVtrFrame(file, plan, points);
        for (std::size_t f = 0; f < fields.size(); f++)
            for (const WrittenSlab &slab : fields[f].slabs)
                Detail::writeRawSlab(file, plan.places[f] + vtkBlockHeader, Detail::vtkShape(cells, fields[f]), false,
                                     slab);
        file.flush();
    });
    onRankZero(comm, [&] { renameDurably(temporary, path); });
}

} // namespace DNDS
