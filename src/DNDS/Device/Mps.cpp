#include "DNDS/Device/Mps.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace DNDS::Device {

namespace {

class Descriptor {
  public:
    explicit Descriptor(int number) : number_(number) {}
    ~Descriptor() {
        if (number_ >= 0)
            ::close(number_);
    }
    Descriptor(const Descriptor &) = delete;
    Descriptor &operator=(const Descriptor &) = delete;
    int get() const noexcept { return number_; }

  private:
    int number_;
};

/// A socket of datagrams never gets through to a daemon's, which is told apart from one that nobody has open any more.
bool isBound(const std::string &path) {
    sockaddr_un address{};
    if (path.size() >= sizeof(address.sun_path))
        return false;
    address.sun_family = AF_UNIX;
    std::ranges::copy(path, address.sun_path);
    const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    return socket.get() >= 0 &&
           (::connect(socket.get(), reinterpret_cast<const sockaddr *>(&address), sizeof(address)) == 0 ||
            errno == EPROTOTYPE);
}

} // namespace

bool mpsAnswers(const std::string &folder) {
    const std::string control = folder + "/control";
    struct stat status {};
    if (::stat(control.c_str(), &status) != 0)
        return false;
    if (S_ISSOCK(status.st_mode))
        return isBound(control);
    return S_ISFIFO(status.st_mode) && // opened for writing only where it is being read
           Descriptor(::open(control.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)).get() >= 0;
}

} // namespace DNDS::Device
