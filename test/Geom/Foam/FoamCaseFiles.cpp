#include "Geom/Foam/FoamCaseFiles.hpp"

#include "DNDS/Mpi/Communicator.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <tuple>

#ifdef DNDS_TEST_ZLIB
#include <zlib.h>
#endif

namespace DNDS::Geom::test {

namespace {

/// Each face with its cells; that of the lower cell decides the direction.
struct TwoSided {
    Face corners;
    index owner;
    index neighbour;
};

/// A boundary face's marks: the number of its patch, of connections after those of patches.
std::size_t patchOf(const SourceMesh &mesh, int mark) {
    return mark >= 0 ? static_cast<std::size_t>(mark) : mesh.patches.size() + static_cast<std::size_t>(-1 - mark);
}

class Writer {
  public:
    explicit Writer(const FoamFileOptions &options) : options_(options) {}

    void header(const std::string &type, const std::string &object) {
        text_ =
            fmt::format("/*------*- C++ -*------*\\\n| a banner, \"quoted\" |\n\\*---*/\nFoamFile\n{{\n    version     "
                        "2.0;\n    format      {};\n    class       {};\n",
                        options_.binary ? "binary" : "ascii", type);
        if (options_.arch)
            text_ += fmt::format("    arch        \"{};label={};scalar={}\";\n", options_.swapped ? "MSB" : "LSB",
                                 options_.labelBits, options_.scalarBits);
        text_ +=
            fmt::format("    note        \"nPoints: 1; // no comment\";\n    location    \"constant/polyMesh\";\n    "
                        "object      {};\n}}\n// * * * //\n\n",
                        object);
    }
    void labels(const std::vector<index> &values, const char *separator = "\n") {
        text_ += fmt::format("{}{}", values.size(), options_.binary ? "\n" : separator);
        if (options_.binary && values.empty())
            return;
        text_ += '(';
        for (const index value : values)
            if (!options_.binary)
                text_ += fmt::format("{}{}", separator, value);
            else if (options_.labelBits == 32)
                raw(static_cast<std::int32_t>(value));
            else
                raw(static_cast<std::int64_t>(value));
        text_ += options_.binary ? ")" : fmt::format("{})", separator);
    }
    void points(const std::vector<std::array<real, 3>> &values) {
        text_ += fmt::format("{}\n(", values.size());
        for (const auto &[x, y, z] : values)
            if (!options_.binary)
                text_ += fmt::format("\n({:.{}g} {:.{}g} {:.{}g})", x, options_.digits, y, options_.digits, z,
                                     options_.digits);
            else
                for (const real v : {x, y, z})
                    options_.scalarBits == 32 ? raw(static_cast<float>(v)) : raw(v);
        text_ += options_.binary ? ")" : "\n)";
    }
    void faces(const std::vector<Face> &values) {
        if (options_.binary && options_.compact) {
            std::vector<index> starts{0};
            std::vector<index> corners;
            for (const Face &face : values) {
                corners.insert(corners.end(), face.begin(), face.end());
                starts.push_back(static_cast<index>(corners.size()));
            }
            labels(starts);
            text_ += '\n';
            labels(corners);
            return;
        }
        text_ += fmt::format("{}\n(\n", values.size());
        for (const Face &face : values) {
            if (options_.binary)
                labels(face);
            else if (face.size() > 5) // OpenFOAM writes short lists in one line, others in many
                labels(face);
            else
                text_ += fmt::format("{}({})", face.size(), fmt::join(face, " "));
            text_ += '\n';
        }
        text_ += ')';
    }
    void boundary(const std::vector<FoamLists::Patch> &patches) {
        text_ += fmt::format("{}\n(\n", patches.size());
        for (const FoamLists::Patch &patch : patches)
            text_ +=
                fmt::format("    {}\n    {{\n        type            {};\n        inGroups        List<word> "
                            "1({});\n        nFaces          {};\n        startFace       {};\n        {}\n    }}\n",
                            patch.name, patch.type, patch.type, patch.size, patch.begin, patch.more);
        text_ += ')';
    }
    std::string take() { return text_ + "\n\n// *** //\n"; }

  private:
    template <class T>
    void raw(T value) {
        std::array<char, sizeof(T)> bytes;
        std::memcpy(bytes.data(), &value, sizeof(T));
        if (options_.swapped)
            std::reverse(bytes.begin(), bytes.end());
        text_.append(bytes.data(), bytes.size());
    }
    FoamFileOptions options_;
    std::string text_;
};

} // namespace

FoamLists foamLists(const SourceMesh &mesh) {
    std::map<Face, TwoSided> all;
    for (index cell = 0; cell < mesh.cells.size(); cell++)
        for (const Face &face : facesOf(mesh.cells, cell)) {
            const auto [known, isNew] = all.try_emplace(sorted(face), TwoSided{face, cell, -1});
            if (!isNew)
                known->second.neighbour = cell;
        }
    FoamLists lists;
    lists.points = mesh.coordinates;
    std::vector<TwoSided> inner;
    for (const auto &[key, face] : all)
        if (face.neighbour >= 0)
            inner.push_back(face);
    std::sort(inner.begin(), inner.end(), [](const TwoSided &a, const TwoSided &b) {
        return std::tie(a.owner, a.neighbour) < std::tie(b.owner, b.neighbour);
    });
    const auto add = [&](const TwoSided &face) {
        lists.faces.push_back(face.corners);
        lists.owner.push_back(face.owner);
    };
    for (const TwoSided &face : inner) {
        add(face);
        lists.neighbour.push_back(face.neighbour);
    }
    const std::size_t count = mesh.patches.size() + 2 * mesh.periodic.size();
    for (std::size_t p = 0; p < count; p++) {
        FoamLists::Patch patch{"", "patch", "", 0, static_cast<index>(lists.faces.size())};
        if (p < mesh.patches.size()) {
            patch.name = mesh.patches[p].name;
        } else {
            const std::size_t side = (p - mesh.patches.size()) % 2;
            const std::string &name = mesh.periodic[(p - mesh.patches.size()) / 2].name;
            patch.type = "cyclic";
            patch.name = name + (side == 0 ? "_first" : "_second");
            patch.more = "neighbourPatch " + name + (side == 0 ? "_second;" : "_first;");
        }
        for (index face = 0; face < mesh.faces.size(); face++)
            if (patchOf(mesh, mesh.faceMarks[static_cast<std::size_t>(face)]) == p)
                add(all.at(sorted(cornersOf(mesh.faces, face))));
        patch.size = static_cast<index>(lists.faces.size()) - patch.begin;
        lists.patches.push_back(patch);
    }
    return lists;
}

std::string foamFile(const FoamLists &lists, const std::string &name, const FoamFileOptions &options) {
    Writer writer(options);
    if (name == "points") {
        writer.header("vectorField", name);
        writer.points(lists.points);
    } else if (name == "faces") {
        writer.header(options.binary && options.compact ? "faceCompactList" : "faceList", name);
        writer.faces(lists.faces);
    } else if (name == "boundary") {
        writer.header("polyBoundaryMesh", name);
        writer.boundary(lists.patches);
    } else {
        writer.header("labelList", name);
        writer.labels(name == "owner" ? lists.owner : lists.neighbour);
    }
    return writer.take();
}

std::string gzipped([[maybe_unused]] const std::string &content) {
#ifdef DNDS_TEST_ZLIB
    z_stream stream{};
    if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return "";
    std::string in = content;
    std::string out(deflateBound(&stream, in.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef *>(in.data());
    stream.avail_in = static_cast<uInt>(in.size());
    stream.next_out = reinterpret_cast<Bytef *>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
#else
    return "";
#endif
}

void FoamCase::put(const std::string &name, const std::string &content) const {
    const CommunicatorView &comm = DNDS::test::world();
    comm.guarded([&] {
        if (comm.rank() != 0)
            return;
        const std::filesystem::path path(file(name));
        std::filesystem::create_directories(path.parent_path());
        if (content.empty())
            std::filesystem::remove(path);
        else
            std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
    });
}

void FoamCase::write(const FoamLists &lists, const FoamFileOptions &options) const {
    for (const std::string name : foamNames) {
        const std::string content = foamFile(lists, name, options);
        put("constant/polyMesh/" + name + (options.compressed ? ".gz" : ""),
            options.compressed ? gzipped(content) : content);
    }
}

} // namespace DNDS::Geom::test
