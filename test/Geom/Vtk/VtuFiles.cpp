#include "Geom/Vtk/VtuFiles.hpp"

#include "DNDS/Geom/Vtk/VtkElements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace DNDS::Geom::test {

namespace {

template <class T>
std::string bytesOf(T value, bool bigEndian) {
    std::string bytes(sizeof(T), '\0');
    std::memcpy(bytes.data(), &value, sizeof(T));
    if (bigEndian != (std::endian::native == std::endian::big))
        std::reverse(bytes.begin(), bytes.end());
    return bytes;
}

std::string base64Of(std::string_view bytes) {
    constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t k = 0; k < bytes.size(); k += 3) {
        std::uint32_t word = 0;
        for (std::size_t i = k; i < k + 3; i++)
            word = word << 8U | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U);
        for (std::size_t i = 0; i < 4; i++)
            text += k + i > bytes.size() ? '=' : letters[word >> (18U - 6U * i) & 63U];
    }
    return text;
}

/// zlib's format with one stored block.
std::string zlibOf(std::string_view bytes) {
    std::uint32_t a = 1, b = 0; // Adler-32
    for (const char c : bytes) {
        a = (a + static_cast<unsigned char>(c)) % 65521;
        b = (b + a) % 65521;
    }
    const auto size = static_cast<std::uint16_t>(bytes.size());
    return "\x78\x01\x01" + bytesOf(size, false) + bytesOf(static_cast<std::uint16_t>(~size), false) +
           std::string(bytes) + bytesOf(b << 16U | a, true);
}

/// Writes arrays one by one.
class Writer {
  public:
    explicit Writer(const VtuOptions &options) : options_(options) {}

    template <class T>
    void add(const std::string &name, const std::vector<T> &values, int components = 1) {
        if (options_.single && std::is_same_v<T, real>)
            return write<float>(name, "Float32", values, components);
        if (options_.single && std::is_same_v<T, index>)
            return write<std::int32_t>(name, "Int32", values, components);
        write<T>(name,
                 std::is_same_v<T, real>    ? "Float64"
                 : std::is_same_v<T, index> ? "Int64"
                                            : "UInt8",
                 values, components);
    }
    void text(const std::string &text) { text_ += text; }

    std::string finish() {
        const std::string header = fmt::format(
            "<?xml version='1.0'?>\n<!-- <VTKFile type=\"PolyData\"> -->\n<VTKFile type=\"UnstructuredGrid\" "
            "version=\"1.0\" byte_order=\"{}\" header_type=\"{}\"{}>\n<UnstructuredGrid>\n",
            options_.bigEndian ? "BigEndian" : "LittleEndian", options_.wideHeaders ? "UInt64" : "UInt32",
            options_.compressed ? " compressor=\"vtkZLibDataCompressor\"" : "");
        text_ = header + text_ + "</Piece>\n</UnstructuredGrid>\n";
        if (options_.format == "appended")
            text_ += fmt::format("<AppendedData encoding=\"{}\">\n  _{}\n</AppendedData>\n",
                                 options_.base64 ? "base64" : "raw", appended_);
        return text_ + "</VTKFile>\n";
    }

  private:
    template <class Stored, class T>
    void write(const std::string &name, const char *type, const std::vector<T> &values, int components) {
        text_ += fmt::format("<DataArray type=\"{}\" Name=\"{}\" NumberOfComponents=\"{}\" format=\"{}\"", type, name,
                             components, options_.format);
        if (options_.format == "appended") {
            text_ += fmt::format(" offset=\"{}\"/>\n", appended_.size());
            appended_ += packed<Stored>(values, options_.base64);
            return;
        }
        text_ += ">\n<InformationKey name=\"L2\"><Value>7</Value></InformationKey>\n";
        if (options_.format == "binary")
            text_ += packed<Stored>(values, true);
        else
            for (const T value : values)
                text_ += fmt::format("{}{}", static_cast<Stored>(value), values.size() % 2 == 0 ? ' ' : '\n');
        text_ += "\n</DataArray>\n";
    }

    std::string header(std::size_t value) const {
        return options_.wideHeaders ? bytesOf(std::uint64_t{value}, options_.bigEndian)
                                    : bytesOf(static_cast<std::uint32_t>(value), options_.bigEndian);
    }

    template <class Stored, class T>
    std::string packed(const std::vector<T> &values, bool base64) const {
        std::string bytes;
        for (const T value : values)
            bytes += bytesOf(static_cast<Stored>(value), options_.bigEndian);
        const auto encoded = [&](const std::string &part) { return base64 ? base64Of(part) : part; };
        if (!options_.compressed)
            return encoded(header(bytes.size()) + bytes);
        constexpr std::size_t blockSize = 64;
        std::string sizes, blocks;
        std::size_t count = 0;
        for (std::size_t at = 0; at < bytes.size(); at += blockSize, count++) {
            const std::string block = zlibOf(std::string_view(bytes).substr(at, blockSize));
            sizes += header(block.size());
            blocks += block;
        }
        return encoded(header(count) + header(blockSize) + header(bytes.size() % blockSize) + sizes) + encoded(blocks);
    }

    const VtuOptions &options_;
    std::string text_, appended_;
};

/// Each face of each cell by itself.
void addNumberedFaces(Writer &writer, const ElementBlock &cells) {
    std::vector<index> corners, cornerEnds, faces, faceEnds;
    for (index c = 0; c < cells.size(); c++) {
        const auto list = cells.nodesOf(c);
        for (std::size_t k = 0; k < list.size(); k += 1 + static_cast<std::size_t>(list[k])) {
            const auto face = list.subspan(k + 1, static_cast<std::size_t>(list[k]));
            corners.insert(corners.end(), face.begin(), face.end());
            faces.push_back(std::ssize(cornerEnds));
            cornerEnds.push_back(std::ssize(corners));
        }
        faceEnds.push_back(std::ssize(faces));
    }
    writer.add("face_connectivity", corners);
    writer.add("face_offsets", cornerEnds);
    writer.add("polyhedron_to_faces", faces);
    writer.add("polyhedron_offsets", faceEnds);
}

} // namespace

std::string vtuFile(const SourceMesh &mesh, const VtuOptions &options) {
    std::vector<real> places, numbers;
    for (const auto &point : mesh.coordinates)
        places.insert(places.end(), point.begin(), point.end());
    std::vector<std::uint8_t> types;
    std::vector<index> offsets, nodes, faces, faceOffsets;
    for (index c = 0; c < mesh.cells.size(); c++) {
        const ElementType type = mesh.cells.types[static_cast<std::size_t>(c)];
        const auto list = mesh.cells.nodesOf(c);
        const VtkElement vtk = vtkElement(type);
        types.push_back(vtk.type);
        numbers.push_back(static_cast<real>(c) + 0.5);
        if (type == ElementType::Polyhedron) {
            const std::size_t count = faces.size();
            faces.push_back(0);
            std::vector<index> corners;
            for (std::size_t k = 0; k < list.size(); k += 1 + static_cast<std::size_t>(list[k])) {
                faces[count]++;
                const auto face = list.subspan(k + 1, static_cast<std::size_t>(list[k]));
                corners.insert(corners.end(), face.begin(), face.end());
            }
            faces.insert(faces.end(), list.begin(), list.end());
            std::ranges::sort(corners);
            nodes.insert(nodes.end(), corners.begin(), std::unique(corners.begin(), corners.end()));
        } else {
            for (std::size_t k = 0; k < list.size(); k++)
                nodes.push_back(list[vtk.order.empty() ? k : vtk.order[k]]);
        }
        faceOffsets.push_back(type == ElementType::Polyhedron ? std::ssize(faces) : -1);
        offsets.push_back(std::ssize(nodes));
    }
    Writer writer(options);
    writer.text(fmt::format("<Piece NumberOfPoints=\"{}\" NumberOfCells=\"{}\">\n<PointData Vectors=\"place\">\n",
                            mesh.nodes(), mesh.cells.size()));
    writer.add("place", places, 3);
    writer.text("</PointData>\n<CellData>\n");
    writer.add("a &lt; b", numbers);
    writer.text(options.cellArrays + "</CellData>\n<Points>\n");
    writer.add("Points", places, 3);
    writer.text("</Points>\n<Cells>\n");
    writer.add("connectivity", nodes);
    writer.add("offsets", offsets);
    writer.add("types", types);
    if (!faces.empty() && options.numberedFaces) {
        addNumberedFaces(writer, mesh.cells);
    } else if (!faces.empty()) {
        writer.add("faces", faces);
        writer.add("faceoffsets", faceOffsets);
    }
    writer.text("</Cells>\n");
    return writer.finish();
}

} // namespace DNDS::Geom::test
