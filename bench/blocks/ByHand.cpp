#include "AlignedVector.hpp"
#include "GhostMethod.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <limits>

namespace DNDS::Bench {

namespace {

constexpr int tag = 11;

int countOf(index doubles) {
    DNDS_CHECK(doubles <= std::numeric_limits<int>::max(), ArgumentError, "{} doubles do not fit one MPI count",
               doubles);
    return static_cast<int>(doubles);
}

class ByHand : public GhostMethod {
  public:
    ByHand(const char *name, const BlockCase &of) : GhostMethod(name, of), memory_(toSize(of.doubles())) {}
    void rewrite(int round) override { of().rewrite(memory_.data(), round); }
    void compare(int round) const override { of().compare(memory_.data(), round, name()); }

  protected:
    double *memory() { return memory_.data(); }
    void copyOwn() {
        for (const RegionCopy &copy : of().own())
            copyRegion(memory(), copy.to, memory(), copy.from);
    }

  private:
    AlignedVector<double> memory_;
};

/// Receives first, then sends.
class Requests {
  public:
    Requests() = default;
    Requests(const Requests &) = delete;
    Requests &operator=(const Requests &) = delete;
    ~Requests() {
        for (MPI_Request &request : all)
            MPI_Request_free(&request);
    }
    std::vector<MPI_Request> all;
};

class Packed final : public ByHand {
  public:
    explicit Packed(const BlockCase &of) : ByHand(PackedName, of), comm_(Communicator::duplicate(of.comm())) {
        index received = 0, sent = 0;
        for (const PeerRegions &from : of.receives())
            received += from.doubles;
        for (const PeerRegions &to : of.sends())
            sent += to.doubles;
        received_.resize(toSize(received));
        sent_.resize(toSize(sent));
        const MPI_Comm comm = comm_.view().handle();
        double *place = received_.data();
        for (const PeerRegions &from : of.receives()) {
            checkMpi(MPI_Recv_init(place, countOf(from.doubles), MPI_DOUBLE, from.rank, tag, comm,
                                   &requests_.all.emplace_back()),
                     "MPI_Recv_init");
            place += from.doubles;
        }
        place = sent_.data();
        for (const PeerRegions &to : of.sends()) {
            checkMpi(MPI_Send_init(place, countOf(to.doubles), MPI_DOUBLE, to.rank, tag, comm,
                                   &requests_.all.emplace_back()),
                     "MPI_Send_init");
            place += to.doubles;
        }
    }

    void exchange() override {
        const auto receives = static_cast<int>(of().receives().size());
        MPI_Request *requests = requests_.all.data();
        if (receives > 0)
            MPI_Startall(receives, requests);
        double *place = sent_.data();
        MPI_Request *send = requests + receives;
        for (const PeerRegions &to : of().sends()) {
            for (const Region &region : to.regions)
                place = packRegion(place, memory(), region);
            MPI_Start(send++);
        }
        copyOwn();
        const double *from = received_.data();
        for (int k = 0; k < receives; ++k) {
            MPI_Wait(requests + k, MPI_STATUS_IGNORE);
            for (const Region &region : of().receives()[toSize(k)].regions)
                from = unpackRegion(memory(), region, from);
        }
        MPI_Waitall(static_cast<int>(of().sends().size()), requests + receives, MPI_STATUSES_IGNORE);
    }

  private:
    Communicator comm_;
    AlignedVector<double> received_, sent_;
    Requests requests_;
};

/// All regions of a peer as one type, relative to the rank's memory.
class RegionsType {
  public:
    explicit RegionsType(const PeerRegions &peer) {
        std::vector<MPI_Datatype> types;
        std::vector<MPI_Aint> places;
        for (const Region &region : peer.regions) {
            std::array<int, 3> sizes{}, counts{}, starts{};
            for (std::size_t d = 0; d < 3; ++d) {
                const index unit = d == 2 ? region.stride[2] : 1;
                sizes[d] = countOf(region.extent[d] * unit);
                counts[d] = countOf(region.count[d] * unit);
                starts[d] = countOf(region.start[d] * unit);
            }
            checkMpi(MPI_Type_create_subarray(3, sizes.data(), counts.data(), starts.data(), MPI_ORDER_C, MPI_DOUBLE,
                                              &types.emplace_back()),
                     "MPI_Type_create_subarray");
            places.push_back(static_cast<MPI_Aint>(region.blockFirst * static_cast<index>(sizeof(double))));
        }
        if (types.size() == 1 && places.front() == 0) {
            type_ = types.front();
        } else {
            const std::vector<int> ones(types.size(), 1);
            checkMpi(MPI_Type_create_struct(static_cast<int>(types.size()), ones.data(), places.data(), types.data(),
                                            &type_),
                     "MPI_Type_create_struct");
            for (MPI_Datatype &type : types)
                MPI_Type_free(&type);
        }
        checkMpi(MPI_Type_commit(&type_), "MPI_Type_commit");
    }
    RegionsType(const RegionsType &) = delete;
    RegionsType &operator=(const RegionsType &) = delete;
    ~RegionsType() { MPI_Type_free(&type_); }
    MPI_Datatype handle() const { return type_; }

  private:
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

class Subarray final : public ByHand {
  public:
    explicit Subarray(const BlockCase &of) : ByHand(SubarrayName, of), comm_(Communicator::duplicate(of.comm())) {
        const MPI_Comm comm = comm_.view().handle();
        for (const PeerRegions &from : of.receives()) {
            const RegionsType type(from);
            checkMpi(MPI_Recv_init(memory(), 1, type.handle(), from.rank, tag, comm, &requests_.all.emplace_back()),
                     "MPI_Recv_init");
        }
        for (const PeerRegions &to : of.sends()) {
            const RegionsType type(to);
            checkMpi(MPI_Send_init(memory(), 1, type.handle(), to.rank, tag, comm, &requests_.all.emplace_back()),
                     "MPI_Send_init");
        }
    }

    void exchange() override {
        const auto count = static_cast<int>(requests_.all.size());
        if (count > 0)
            MPI_Startall(count, requests_.all.data());
        copyOwn();
        MPI_Waitall(count, requests_.all.data(), MPI_STATUSES_IGNORE);
    }

  private:
    Communicator comm_;
    Requests requests_;
};

class StridedCopy final : public ByHand {
  public:
    explicit StridedCopy(const BlockCase &of) : ByHand(StridedCopyName, of) {}
    bool checked() const override { return of().inner().empty(); }
    void exchange() override {
        for (const RegionCopy &copy : of().inner())
            copyRegion(memory(), copy.to, memory(), copy.from);
        copyOwn();
    }
};

} // namespace

std::unique_ptr<GhostMethod> makePacked(const BlockCase &of) { return std::make_unique<Packed>(of); }
std::unique_ptr<GhostMethod> makeSubarray(const BlockCase &of) { return std::make_unique<Subarray>(of); }
std::unique_ptr<GhostMethod> makeStridedCopy(const BlockCase &of) { return std::make_unique<StridedCopy>(of); }

} // namespace DNDS::Bench
