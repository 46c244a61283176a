/// @file CgnsFile.hpp
/// @brief Writes small CGNS files node by node through the CGNS library, as any writer of any age might have.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace DNDS::Geom::test {

enum class FileType { Adf, Hdf5 };

using Ints = std::vector<std::int32_t>;
using Longs = std::vector<std::int64_t>;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;
/// The data of a node: none, text, or numbers.
using Data = std::variant<std::monostate, std::string, Ints, Longs, Floats, Doubles>;

/// A file being written. Nodes are known by the library's numbers.
class CgnsFile {
  public:
    CgnsFile(const std::string &path, FileType type, float version);
    CgnsFile(const CgnsFile &) = delete;
    CgnsFile &operator=(const CgnsFile &) = delete;
    ~CgnsFile();

    double root() const { return root_; }
    /// `dimensions` are those of the data, the fastest first; {} means one of the data's length.
    double add(double parent, const std::string &name, const std::string &label, const Data &data = {},
               const std::vector<int> &dimensions = {});
    void link(double parent, const std::string &name, const std::string &file, const std::string &path);

    double base(const std::string &name, int cellDimension, int physicalDimension);
    double zone(double base, const std::string &name, std::int64_t nodes, std::int64_t cells);
    /// `extent`: nodes along each index.
    double structuredZone(double base, const std::string &name, const Ints &extent);
    void coordinates(double zone, const std::vector<std::array<double, 3>> &points, int dimensions = 3);
    double section(double zone, const std::string &name, int type, std::int64_t first, std::int64_t last,
                   const Data &connectivity, const Data &offsets = {});
    /// `set` is "PointRange", "PointList", "ElementRange" or "ElementList".
    double condition(double zone, const std::string &name, const std::string &kind, const std::string &set,
                     const Data &points, const std::string &location = "", const std::string &family = "");
    double connection(double zone, const std::string &name, const std::string &donor, const Data &points,
                      const Data &donorPoints, const std::string &location = "");
    /// Makes a connection periodic.
    double periodic(double connection, const Floats &centre, const Floats &angle, const Floats &translation);

  private:
    double group(double zone, const std::string &name, const std::string &label);

    int file_ = 0;
    double root_ = 0.0;
};

} // namespace DNDS::Geom::test
