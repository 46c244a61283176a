#include "DNDS/Geom/Foam/FoamCase.hpp"

#include "DNDS/Base/Error.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <vector>

namespace DNDS::Geom::Foam {

namespace {

using Path = std::filesystem::path;

// Errors, such as a folder that may not be read, count as absence.
bool isThere(const Path &path) {
    std::error_code none;
    return std::filesystem::exists(path, none);
}

bool isFolder(const Path &path) {
    std::error_code none;
    return std::filesystem::is_directory(path, none);
}

/// Whether the folder has the files that every mesh has; points may be elsewhere while it moves.
bool isMesh(const Path &folder) {
    const auto has = [&](const char *name) {
        return isThere(folder / name) || isThere(folder / (std::string(name) + ".gz"));
    };
    return has("faces") && has("owner");
}

/// The folders in `folder` for which `test` holds, sorted.
/// Unreadable folders are skipped: a case may lie beside others' data.
template <class Test>
std::vector<std::string> foldersIn(const Path &folder, Test &&test) {
    std::vector<std::string> names;
    if (!isFolder(folder))
        return names;
    constexpr auto readable = std::filesystem::directory_options::skip_permission_denied;
    for (const auto &entry : std::filesystem::directory_iterator(folder, readable))
        if (isFolder(entry.path()) && test(entry.path()))
            names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

/// The regions of a case, given its folder `constant`.
std::vector<std::string> regionsIn(const Path &folder) {
    return foldersIn(folder, [](const Path &inside) { return isFolder(inside / "polyMesh"); });
}

/// Whether decomposePar was there: folders processor0, or processors4 of collated files.
bool isDecomposed(const Path &folder) {
    return !foldersIn(folder, [](const Path &inside) {
                return inside.filename().string().starts_with("processor");
            }).empty();
}

/// The folder below which meshes are: that of the case, or `constant` of it, or the like.
Path folderOf(const std::string &path) {
    if (isFolder(path))
        return path;
    const Path parent = Path(path).parent_path();
    return parent.empty() ? Path(".") : parent;
}

} // namespace

// Any trace of a case counts, so that a case without a readable mesh gets a message that says why.
bool isFoamCase(const std::string &path) {
    if (!isFolder(path)) {
        const std::string extension = Path(path).extension().string();
        return (extension == ".foam" || extension == ".OpenFOAM") && isThere(path) &&
               isFoamCase(folderOf(path).string());
    }
    const Path folder(path);
    return isMesh(folder) || isFolder(folder / "polyMesh") || isFolder(folder / "constant" / "polyMesh") ||
           isThere(folder / "system" / "controlDict") || !regionsIn(folder / "constant").empty() ||
           isDecomposed(folder);
}

/// Each refusal names the folders that exist, and the tool that would make a readable mesh.
std::string meshFolder(const std::string &path, const std::string &region) {
    const Path folder = folderOf(path);
    const Path constant = isFolder(folder / "constant") ? folder / "constant" : folder;
    if (!region.empty()) {
        DNDS_CHECK(isFolder(constant / region / "polyMesh"), DataError,
                   "{} has no region '{}': there is no folder {}; there are: '{}'", path, region,
                   (constant / region / "polyMesh").string(), fmt::join(regionsIn(constant), "', '"));
        return (constant / region / "polyMesh").string();
    }
    for (const Path &candidate : {folder, folder / "polyMesh", constant / "polyMesh"})
        if (isMesh(candidate))
            return candidate.string();
    const std::vector<std::string> regions = regionsIn(constant);
    DNDS_CHECK(regions.empty(), DataError,
               "{}: regions are read one at a time: choose one of '{}' (dnds-mesh --base, CgnsOptions::base)", path,
               fmt::join(regions, "', '"));
    DNDS_CHECK(!isDecomposed(folder), DataError,
               "{} is a decomposed case without a whole mesh; reconstructParMesh -constant of OpenFOAM makes it", path);
    throw DataError(fmt::format("{} has no mesh of OpenFOAM: no files faces and owner in constant/polyMesh", path));
}

std::string findFile(const std::string &folder, const std::string &name) {
    std::string file = (Path(folder) / name).string();
    if (isThere(file))
        return file;
    DNDS_CHECK(isThere(file + ".gz"), DataError, "{} has no file {}", folder, name);
    return file + ".gz";
}

MeshFile openFile(const std::string &path) { return MeshFile(path, path.ends_with(".gz")); }

} // namespace DNDS::Geom::Foam
