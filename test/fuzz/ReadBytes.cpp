#include "fuzz/ReadBytes.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Geom/Build/BuildMesh.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "DNDS/Geom/Read/ReadMesh.hpp"

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <unistd.h>

namespace DNDS::Geom::fuzz {

namespace {

/// A file of this process, the same one for all inputs.
std::string inputPath() {
    const std::filesystem::path memory("/dev/shm");
    const auto folder = std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
    return (folder / fmt::format("dnds_fuzz_{}", ::getpid())).string();
}

class InputFile {
  public:
    explicit InputFile(std::string_view bytes) : path_(inputPath()) {
        std::ofstream file(path_, std::ios::binary);
        file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        file.close();
        DNDS_CHECK(file.good(), StateError, "cannot write {}", path_);
    }
    InputFile(const InputFile &) = delete;
    InputFile &operator=(const InputFile &) = delete;
    ~InputFile() { ::unlink(path_.c_str()); }
    const std::string &path() const { return path_; }

  private:
    std::string path_;
};

bool mayBlameFile(ErrorKind kind) {
    return kind == ErrorKind::Data || kind == ErrorKind::Index || kind == ErrorKind::Argument ||
           kind == ErrorKind::NotBuilt;
}

/// `zones`: the file seems to be one of SU2 with several, of which one must be chosen.
void readMesh(const std::string &path, bool zones) {
    MeshFields fields;
    CgnsOptions options;
    options.fields = &fields;
    if (zones)
        options.base = "1";
    const CommunicatorView comm(MPI_COMM_SELF);
    const UnstructuredMesh mesh =
        buildMesh(comm, Geom::readMesh(comm, path, options), {.ghostLayers = 0, .openPolyhedra = true});
    computeMetrics(mesh);
}

} // namespace

Verdict readBytes(std::string_view bytes) {
    const InputFile file(bytes);
    try {
#ifdef DNDS_FUZZ_CHECKPOINTS
        if (bytes.starts_with(checkpointBegin))
            readCheckpoint(file.path());
        else
#endif
            readMesh(file.path(), bytes.find("NZONE") != std::string_view::npos);
        return {true, ""};
    } catch (const Error &error) {
        if (!mayBlameFile(error.kind()))
            throw std::logic_error(fmt::format("an error that no file may cause: {}", error.what()));
        return {false, error.what()};
    } catch (const std::exception &error) {
        throw std::logic_error(fmt::format("not a typed error: {}", error.what()));
    }
}

} // namespace DNDS::Geom::fuzz
