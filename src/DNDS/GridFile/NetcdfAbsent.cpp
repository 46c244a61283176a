// Replaces NetcdfReader.cpp and NetcdfWriter.cpp if no NetCDF library fits this MPI.
#include "DNDS/Base/Error.hpp"
#include "DNDS/GridFile/Netcdf.hpp"

namespace DNDS {

namespace {

[[noreturn]] void failWithoutNetcdf(const std::string &path) {
    throw NotBuiltError(
        fmt::format("{}: DNDS was built without a parallel NetCDF library (libnetcdf-pnetcdf-dev)", path));
}

} // namespace

// Constructors throw, so no object exists and the members below are never called. They are defined for the linker.
struct NetcdfReader::File {};

NetcdfReader::NetcdfReader(CommunicatorView comm, std::string path) : comm_(comm), path_(std::move(path)) {
    failWithoutNetcdf(path_);
}
NetcdfReader::NetcdfReader(NetcdfReader &&) noexcept = default;
NetcdfReader &NetcdfReader::operator=(NetcdfReader &&) noexcept = default;
NetcdfReader::~NetcdfReader() = default;
std::vector<index> NetcdfReader::shape(std::string_view, std::span<const DimensionPick>) const {
    failWithoutNetcdf(path_);
}
std::vector<real> NetcdfReader::values(std::string_view) const { failWithoutNetcdf(path_); }
index NetcdfReader::place(const NetcdfVariable &, const DimensionPick &) const { failWithoutNetcdf(path_); }
void NetcdfReader::read(std::string_view, std::span<const Slab>, const NetcdfReadOptions &) const {
    failWithoutNetcdf(path_);
}
std::vector<std::string> NetcdfReader::notes() const { failWithoutNetcdf(path_); }
bool NetcdfReader::built() noexcept { return false; }

struct NetcdfWriter::File {
    std::string path;
    std::vector<std::string> notes;
};

NetcdfWriter::NetcdfWriter(CommunicatorView, std::string path, const NetcdfWriteOptions &) { failWithoutNetcdf(path); }
NetcdfWriter::NetcdfWriter(NetcdfWriter &&) noexcept = default;
NetcdfWriter &NetcdfWriter::operator=(NetcdfWriter &&) noexcept = default;
NetcdfWriter::~NetcdfWriter() = default;
void NetcdfWriter::dimension(const std::string &, index) { failWithoutNetcdf(file_->path); }
void NetcdfWriter::unlimited(const std::string &) { failWithoutNetcdf(file_->path); }
void NetcdfWriter::variable(const std::string &, ElementKind, const std::vector<std::string> &,
                            std::vector<NetcdfAttribute>) {
    failWithoutNetcdf(file_->path);
}
void NetcdfWriter::attribute(NetcdfAttribute) { failWithoutNetcdf(file_->path); }
void NetcdfWriter::coordinate(const std::string &, std::vector<real>, std::vector<NetcdfAttribute>) {
    failWithoutNetcdf(file_->path);
}
std::string NetcdfWriter::axis(const GridAxis &, bool, bool) { failWithoutNetcdf(file_->path); }
void NetcdfWriter::like(const NetcdfVariable &) { failWithoutNetcdf(file_->path); }
void NetcdfWriter::define() { failWithoutNetcdf(file_->path); }
void NetcdfWriter::write(std::string_view, std::span<const WrittenSlab>, bool) { failWithoutNetcdf(file_->path); }
index NetcdfWriter::length(std::string_view) const { failWithoutNetcdf(file_->path); }
void NetcdfWriter::close() { failWithoutNetcdf(file_->path); }
const std::vector<std::string> &NetcdfWriter::notes() const { return file_->notes; }
const std::string &NetcdfWriter::path() const { return file_->path; }

} // namespace DNDS
