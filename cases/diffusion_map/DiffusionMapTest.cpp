// Diffusion over the sphere: against exact solutions, the same bits on any number of ranks, and through files.

#include "MapFile.hpp"

#include "support/MpiTest.hpp"
#include "support/TemporaryFile.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <numbers>
#include <random>

namespace DiffusionMap {
namespace {

constexpr real pi = std::numbers::pi;
constexpr real wall = std::numeric_limits<real>::quiet_NaN();

DNDS::CommunicatorView world() { return {MPI_COMM_WORLD}; }

std::vector<real> spaced(real first, real last, index count) {
    std::vector<real> list;
    for (index k = 0; k < count; ++k)
        list.push_back(first + (last - first) * static_cast<real>(k) / static_cast<real>(count - 1));
    return list;
}

/// Points on the poles and all around.
Sphere globe(index rows, index columns, bool falling = true) {
    return {spaced(falling ? 90 : -90, falling ? -90 : 90, rows),
            spaced(0, 360 - 360.0 / static_cast<real>(columns), columns)};
}

using Value = std::function<real(index row, index column)>;

void set(Field &field, const Value &value) {
    const auto v = field.view();
    for (index i = 0; i < v.extent(0); ++i)
        for (index j = 0; j < v.extent(1); ++j)
            v(i, j) = value(v.global(i, 0), v.global(j, 1));
}

/// The whole map on all ranks.
std::vector<real> whole(const Diffusion &map) {
    const Sphere &sphere = map.sphere();
    std::vector<std::uint64_t> bits(static_cast<std::size_t>(sphere.rows() * sphere.columns()), 0);
    const auto v = map.field().view();
    for (index i = 0; i < v.extent(0); ++i)
        for (index j = 0; j < v.extent(1); ++j)
            std::memcpy(&bits[static_cast<std::size_t>(v.global(i, 0) * sphere.columns() + v.global(j, 1))], &v(i, j),
                        sizeof(real));
    MPI_Allreduce(MPI_IN_PLACE, bits.data(), static_cast<int>(bits.size()), MPI_UINT64_T, MPI_BOR, MPI_COMM_WORLD);
    std::vector<real> values(bits.size());
    std::memcpy(values.data(), bits.data(), bits.size() * sizeof(real));
    return values;
}

/// The same on all ranks; every fifth cell is a wall, and so is a ring that cuts the north off.
Value islands(const Sphere &sphere) {
    return [&sphere](index row, index column) {
        std::mt19937_64 random(static_cast<std::uint64_t>(row * sphere.columns() + column));
        const real value = std::uniform_real_distribution<real>(-1, 3)(random);
        return random() % 5 == 0 || row == sphere.rows() / 3 ? wall : value;
    };
}

real stable(const Sphere &sphere) { return 0.9 * sphere.longestStep(90); }

/// Explicit steps without ranks, blocks and ghosts.
std::vector<real> plainLoop(const Sphere &sphere, std::vector<real> u, real step, int steps) {
    const auto place = [&](index row, index column) {
        return static_cast<std::size_t>(row * sphere.columns() + column);
    };
    for (int n = 0; n < steps; ++n) {
        std::vector<real> next(u.size());
        for (index row = 0; row < sphere.rows(); ++row)
            for (index column = 0; column < sphere.columns(); ++column) {
                const real here = u[place(row, column)];
                real flow = 0;
                const auto from = [&](index i, index j, real conductance) {
                    if (i < 0 || i >= sphere.rows() || (!sphere.periodic() && (j < 0 || j >= sphere.columns())))
                        return;
                    const real there = u[place(i, (j + sphere.columns()) % sphere.columns())];
                    if (!std::isnan(there))
                        flow += conductance * (there - here);
                };
                from(row - 1, column, sphere.meridional(row, column));
                from(row + 1, column, sphere.meridional(row + 1, column));
                from(row, column - 1, sphere.zonal(row, column));
                from(row, column + 1, sphere.zonal(row, column + 1));
                next[place(row, column)] = here + step * flow / sphere.area(row, column);
            }
        u.swap(next);
    }
    return u;
}

void expectSameBits(const std::vector<real> &one, const std::vector<real> &other) {
    ASSERT_EQ(one.size(), other.size());
    for (std::size_t k = 0; k < one.size(); ++k)
        ASSERT_TRUE(one[k] == other[k] || (std::isnan(one[k]) && std::isnan(other[k])))
            << "cell " << k << ": " << one[k] << " and " << other[k];
}

TEST(Sphere, CellsCoverIt) {
    for (const Sphere &sphere :
         {globe(19, 36), globe(19, 36, false), Sphere(spaced(87.5, -87.5, 36), spaced(-180, 170, 36)),
          Sphere({90, 40, 10, -5, -90}, {0, 20, 70, 180, 270})}) {
        EXPECT_TRUE(sphere.periodic());
        real area = 0;
        for (index row = 0; row < sphere.rows(); ++row)
            for (index column = 0; column < sphere.columns(); ++column) {
                EXPECT_GT(sphere.area(row, column), 0);
                area += sphere.area(row, column);
            }
        EXPECT_NEAR(area, 4 * pi, 1e-12);
        EXPECT_EQ(sphere.meridional(0, 0), 0);
        EXPECT_EQ(sphere.meridional(sphere.rows(), 0), 0);
        EXPECT_EQ(sphere.zonal(1, 0), sphere.zonal(1, sphere.columns()));
    }
    const Sphere region(spaced(30, 60, 31), spaced(-10, 40, 26));
    EXPECT_FALSE(region.periodic());
}

TEST(Sphere, RefusesWhatIsNoGrid) {
    EXPECT_THROW(Sphere({10}, {0, 1}), DNDS::ArgumentError);
    EXPECT_THROW(Sphere({10, 20, 15}, {0, 1}), DNDS::ArgumentError);
    EXPECT_THROW(Sphere({10, 20, 95}, {0, 1}), DNDS::ArgumentError);
    EXPECT_THROW(Sphere({10, 20}, spaced(0, 360, 37)), DNDS::ArgumentError);
    EXPECT_THROW(globe(10, 12).longestStep(5), DNDS::ArgumentError);
}

/// After the time in which a spherical harmonic decays to a half, the largest difference to that.
real errorOf(index rows, int order) {
    const real half = 90 / static_cast<real>(rows);
    const Sphere sphere(spaced(90 - half, half - 90, rows), spaced(0, 360 - 2 * half, 2 * rows));
    const auto harmonic = [&](index row, index column) {
        const real latitude = sphere.latitudes()[static_cast<std::size_t>(row)] * pi / 180;
        const real longitude = sphere.longitudes()[static_cast<std::size_t>(column)] * pi / 180;
        return order == 0 ? std::sin(latitude) : std::cos(latitude) * std::cos(longitude);
    };
    const real total = std::log(2.0) / 2; // both decay as exp(-2 t)
    const auto steps = static_cast<index>(std::ceil(total / stable(sphere)));
    Diffusion map(world(), sphere, total / static_cast<real>(steps));
    set(map.field(), harmonic);
    map.advance(steps);
    real error = 0;
    const auto v = std::as_const(map).field().view();
    for (index i = 0; i < v.extent(0); ++i)
        for (index j = 0; j < v.extent(1); ++j)
            error = std::max(error, std::abs(v(i, j) - harmonic(v.global(i, 0), v.global(j, 1)) / 2));
    return world().allReduce(error, MPI_MAX);
}

TEST(DiffusionMap, HarmonicsDecayAsTheyMust) {
    for (const int order : {0, 1}) {
        const real coarse = errorOf(10, order);
        const real fine = errorOf(20, order);
        EXPECT_LT(coarse, 0.02);
        EXPECT_LT(fine, coarse / 2.5) << "of order " << order;
    }
}

TEST(DiffusionMap, SameBitsAsAPlainLoop) {
    for (const Sphere &sphere : {globe(13, 24), Sphere(spaced(60, 20, 9), spaced(5, 60, 12)), globe(2, 3)}) {
        Diffusion map(world(), sphere, stable(sphere));
        set(map.field(), islands(sphere));
        const std::vector<real> start = whole(map);
        map.advance(7);
        expectSameBits(whole(map), plainLoop(sphere, start, stable(sphere), 7));
        map.advance(4);
        expectSameBits(whole(map), plainLoop(sphere, start, stable(sphere), 11));
    }
}

TEST(DiffusionMap, KeepsTheIntegralOfEachSea) {
    Sphere sphere = globe(25, 40);
    const real step = 0.9 * sphere.longestStep(60);
    EXPECT_GT(sphere.limitZonal(step / 0.9), 0);
    EXPECT_EQ(sphere.limitZonal(step / 0.9000001), 0) << "once is enough";
    Diffusion map(world(), sphere, step);
    const Value value = islands(sphere);
    set(map.field(), value);
    const auto seas = [&] {
        std::vector<real> sums(2, 0);
        const std::vector<real> values = whole(map);
        for (std::size_t k = 0; k < values.size(); ++k) {
            const auto row = static_cast<index>(k) / sphere.columns();
            if (!std::isnan(values[k]))
                sums[row < sphere.rows() / 3 ? 0 : 1] +=
                    values[k] * sphere.area(row, static_cast<index>(k) % sphere.columns());
        }
        return sums;
    };
    const std::vector<real> before = seas();
    const auto range = map.range();
    const real integral = map.integral();
    map.advance(300);
    const std::vector<real> after = seas();
    EXPECT_NEAR(after[0], before[0], 1e-12);
    EXPECT_NEAR(after[1], before[1], 1e-12);
    EXPECT_NEAR(map.integral(), integral, 1e-12);
    EXPECT_NEAR(map.integral(), after[0] + after[1], 1e-12);
    EXPECT_GT(map.range().first, range.first);
    EXPECT_LT(map.range().second, range.second);
    const std::vector<real> values = whole(map);
    for (index row = 0; row < sphere.rows(); ++row)
        for (index column = 0; column < sphere.columns(); ++column)
            EXPECT_EQ(std::isnan(values[static_cast<std::size_t>(row * sphere.columns() + column)]),
                      std::isnan(value(row, column)));
}

TEST(DiffusionMap, FallingLatitudesGiveTheMirrorImage) {
    const Sphere falling = globe(12, 18);
    const Sphere growing = globe(12, 18, false);
    const Value value = islands(falling);
    Diffusion one(world(), falling, stable(falling));
    Diffusion other(world(), growing, stable(falling));
    set(one.field(), value);
    set(other.field(), [&](index row, index column) { return value(11 - row, column); });
    one.advance(20);
    other.advance(20);
    const std::vector<real> a = whole(one);
    const std::vector<real> b = whole(other);
    for (std::size_t row = 0; row < 12; ++row)
        for (std::size_t column = 0; column < 18; ++column) {
            const real mirrored = b[(11 - row) * 18 + column];
            EXPECT_EQ(std::isnan(a[row * 18 + column]), std::isnan(mirrored));
            if (!std::isnan(mirrored)) {
                EXPECT_NEAR(a[row * 18 + column], mirrored, 1e-14);
            }
        }
}

TEST(MapFile, ComesBackWithWalls) {
    if (!DNDS::NetcdfReader::built())
        GTEST_SKIP() << "this build has no NetCDF";
    const DNDS::Geom::test::TemporaryFile path(".nc");
    const Sphere sphere = globe(9, 16);
    Diffusion map(world(), sphere, stable(sphere));
    set(map.field(), islands(sphere));
    Field before("before");
    before.decompose(world(), {sphere.rows(), sphere.columns()});
    set(before, islands(sphere)); // it may be cut in another way than the map
    const std::vector<real> first = whole(map);
    map.advance(5);
    DNDS::NetcdfVariable variable;
    variable.name = "t";
    variable.attributes = {{"units", "K"}};
    writeMaps(world(), path.path(), variable, sphere, before, map.field());

    const MapFile start(world(), path.path(), "", {});
    EXPECT_EQ(start.variable().name, "before");
    EXPECT_EQ(start.variable().text("units"), "K");
    EXPECT_EQ(start.sphere().latitudes(), sphere.latitudes());
    Diffusion again(world(), start.sphere(), stable(sphere));
    start.read(again.field());
    expectSameBits(whole(again), first);
    again.advance(5);
    const MapFile end(world(), path.path(), "after", {});
    Diffusion result(world(), end.sphere(), 0);
    end.read(result.field());
    expectSameBits(whole(result), whole(again));
    EXPECT_THROW(MapFile(world(), path.path(), "latitude", {}), DNDS::ArgumentError);
    EXPECT_THROW(MapFile(world(), path.path(), "salt", {}), DNDS::ArgumentError);
}

} // namespace
} // namespace DiffusionMap
