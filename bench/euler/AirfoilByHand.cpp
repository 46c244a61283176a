#include "AirfoilMethod.hpp"

#include "AlignedVector.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace DNDS::Bench {

namespace {

class AirfoilByHand final : public AirfoilMethod {
  public:
    AirfoilByHand(const Geom::UnstructuredMesh &mesh, const Geom::MeshMetrics &metrics, const AirfoilFlow &flow)
        : flow_(flow), cells_(static_cast<int>(mesh.cells.owned)), all_(static_cast<int>(mesh.cells.size())) {
        readFaces(mesh, metrics);
        readCells(mesh, metrics);
        q_.resize(toSize(all_) * rowWidth);
        old_.resize(toSize(cells_) * flowWidth);
        residual_.resize(toSize(all_) * flowWidth);
        plan(mesh);
    }
    ~AirfoilByHand() override {
        for (MPI_Request &request : requests_)
            MPI_Request_free(&request);
    }

    void reset() override {
        for (int c = 0; c < cells_; c++)
            flow_.initial(centres_[toSize(2 * c)], centres_[toSize(2 * c + 1)], q_.data() + rowWidth * c);
        std::fill(residual_.begin(), residual_.end(), 0.0);
    }

    double iterate(int iterations) override {
        double rms = 0;
        for (int i = 0; i < iterations; i++) {
            save();
            for (int stage = 0; stage < airfoilStages; stage++) {
                timeSteps();
                startPull();
                fluxes(0, innerFaces_);
                waitForPull();
                fluxes(innerFaces_, faces_);
                sideFluxes();
                rms = update();
            }
        }
        return rms;
    }

    std::span<const double> rows() override { return {q_.data(), toSize(cells_) * rowWidth}; }

  private:
    static constexpr int tag = 11;

    /// Inner faces, then those with a ghost, then, in lists of their own, boundary faces.
    void readFaces(const Geom::UnstructuredMesh &mesh, const Geom::MeshMetrics &metrics) {
        std::vector<LocalIndex> own;
        for (index face = 0; face < mesh.faces.owned; face++)
            own.push_back(static_cast<LocalIndex>(face));
        own.insert(own.end(), mesh.sharedFaces.begin(), mesh.sharedFaces.end());
        newNumbers_.assign(toSize(mesh.faces.size()), -1);
        std::array<std::vector<LocalIndex>, 3> sorted;
        for (const LocalIndex face : own) {
            const LocalIndex first = mesh.faceCells(face, 0);
            const LocalIndex second = mesh.faceCells(face, 1);
            sorted[second < 0 ? 2 : std::max(first, second) >= cells_ ? 1 : 0].push_back(face);
        }
        innerFaces_ = static_cast<int>(sorted[0].size());
        faces_ = innerFaces_ + static_cast<int>(sorted[1].size());
        for (const auto &list : sorted)
            for (const LocalIndex face : list) {
                newNumbers_[toSize(face)] = static_cast<int>(normals_.size() / 3);
                normals_.insert(normals_.end(),
                                {metrics.areaVectors(face, 0), metrics.areaVectors(face, 1), metrics.areas(face, 0)});
                faceCells_.insert(faceCells_.end(), {mesh.faceCells(face, 0), mesh.faceCells(face, 1)});
                if (mesh.faceCells(face, 1) < 0)
                    sides_.push_back(sideOf(mesh, face));
            }
    }

    void readCells(const Geom::UnstructuredMesh &mesh, const Geom::MeshMetrics &metrics) {
        for (int c = 0; c < cells_; c++) {
            const auto own = mesh.cellFaces[c];
            DNDS_CHECK(own.size() == 4, ArgumentError, "the program by hand is for quadrilaterals");
            for (const LocalIndex face : own)
                cellFaces_.push_back(newNumbers_[toSize(face)]);
            centres_.insert(centres_.end(), {metrics.centroids(c, 0), metrics.centroids(c, 1)});
        }
    }

    void plan(const Geom::UnstructuredMesh &mesh) {
        const MPI_Comm comm = mesh.comm.handle();
        const PeerRows &owners = mesh.cells.pattern->owners();
        const PeerRows &readers = mesh.cells.pattern->readers();
        for (const index row : readers.values)
            sentRows_.push_back(static_cast<int>(row));
        packed_.resize(sentRows_.size() * rowWidth);
        readerStarts_.assign(readers.starts.begin(), readers.starts.end());
        const auto width = [](index rows) { return static_cast<int>(rows * rowWidth); };
        for (std::size_t k = 0; k < owners.size(); k++)
            checkMpi(MPI_Recv_init(q_.data() + rowWidth * (cells_ + owners.starts[k]),
                                   width(owners.starts[k + 1] - owners.starts[k]), MPI_DOUBLE, owners.ranks[k], tag,
                                   comm, &requests_.emplace_back()),
                     "MPI_Recv_init");
        receives_ = static_cast<int>(requests_.size());
        for (std::size_t k = 0; k < readers.size(); k++)
            checkMpi(MPI_Send_init(packed_.data() + rowWidth * readers.starts[k],
                                   width(readers.starts[k + 1] - readers.starts[k]), MPI_DOUBLE, readers.ranks[k], tag,
                                   comm, &requests_.emplace_back()),
                     "MPI_Send_init");
    }

    void save() {
        for (int c = 0; c < cells_; c++)
            for (int k = 0; k < flowWidth; k++)
                old_[toSize(flowWidth * c + k)] = q_[toSize(rowWidth * c + k)];
    }

    void timeSteps() {
        double *q = q_.data();
        const int *faces = cellFaces_.data();
        const double *normals = normals_.data();
        for (int c = 0; c < cells_; c++, q += rowWidth, faces += 4) {
            const double u = q[1] / q[0];
            const double v = q[2] / q[0];
            const double sound = std::sqrt(flow_.gamma * flow_.pressure(q) / q[0]);
            double sum = 0;
            for (int j = 0; j < 4; j++) {
                const double *n = normals + 3 * faces[j];
                sum += AirfoilFlow::waveSpeed(u, v, sound, n[0], n[1], n[2]);
            }
            q[4] = sum;
        }
    }

    void startPull() {
        if (receives_ > 0)
            checkMpi(MPI_Startall(receives_, requests_.data()), "MPI_Startall");
        for (std::size_t k = 0; k + 1 < readerStarts_.size(); k++) {
            for (int i = readerStarts_[k]; i < readerStarts_[k + 1]; i++) {
                const double *from = q_.data() + rowWidth * sentRows_[toSize(i)];
                std::copy_n(from, rowWidth, packed_.data() + rowWidth * i);
            }
            checkMpi(MPI_Start(&requests_[toSize(receives_) + k]), "MPI_Start");
        }
    }
    void waitForPull() {
        checkMpi(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    }

    void fluxes(int begin, int end) {
        const double *q = q_.data();
        double *residual = residual_.data();
        const int *cells = faceCells_.data();
        const double *normals = normals_.data();
        for (int f = begin; f < end; f++) {
            const int first = cells[2 * f];
            const int second = cells[2 * f + 1];
            double flux[flowWidth];
            flow_.through(q + rowWidth * first, q + rowWidth * second, normals[3 * f], normals[3 * f + 1], flux);
            for (int k = 0; k < flowWidth; k++) {
                residual[flowWidth * first + k] += flux[k];
                residual[flowWidth * second + k] -= flux[k];
            }
        }
    }

    void sideFluxes() {
        for (std::size_t i = 0; i < sides_.size(); i++) {
            const std::size_t f = toSize(faces_) + i;
            const int cell = faceCells_[2 * f];
            double flux[flowWidth];
            flow_.atSide(sides_[i], q_.data() + rowWidth * cell, normals_[3 * f], normals_[3 * f + 1], flux);
            for (int k = 0; k < flowWidth; k++)
                residual_[toSize(flowWidth * cell + k)] += flux[k];
        }
    }

    double update() {
        double *q = q_.data();
        double *residual = residual_.data();
        const double *old = old_.data();
        double rms = 0;
        for (int c = 0; c < cells_; c++, q += rowWidth, residual += flowWidth, old += flowWidth) {
            const double step = flow_.cfl / q[4];
            for (int k = 0; k < flowWidth; k++) {
                const double change = step * residual[k];
                q[k] = old[k] - change;
                residual[k] = 0;
                rms += change * change;
            }
        }
        std::fill(residual, residual_.data() + residual_.size(), 0.0); // ghosts
        return rms;
    }

    AirfoilFlow flow_;
    int cells_, all_;
    int innerFaces_ = 0, faces_ = 0;
    std::vector<int> newNumbers_;
    AlignedVector<double> q_, old_, residual_, packed_;
    AlignedVector<double> normals_; ///< [faces] x, y, length
    AlignedVector<int> faceCells_, cellFaces_;
    AlignedVector<double> centres_;
    std::vector<AirfoilSide> sides_;
    std::vector<int> sentRows_, readerStarts_;
    std::vector<MPI_Request> requests_; ///< receives first
    int receives_ = 0;
};

} // namespace

std::unique_ptr<AirfoilMethod> makeAirfoilByHand(const Geom::UnstructuredMesh &mesh, const Geom::MeshMetrics &metrics,
                                                 const AirfoilFlow &flow) {
    return std::make_unique<AirfoilByHand>(mesh, metrics, flow);
}

} // namespace DNDS::Bench
