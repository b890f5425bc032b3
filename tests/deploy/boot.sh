# Becomes the first process of a machine of its own: this host's files, of which none can be changed,
# another network (loopback alone), and a real systemd. Called by machine.py in namespaces of its own.
#   boot.sh FOLDER SHARED [FROM TO]...     further pairs are seen below /srv, read-only
set -eu
folder=$1 shared=$2
shift 2
root=$folder/root

mount -t tmpfs -o size=4g changes "$folder"
mkdir "$folder/upper" "$folder/work" "$root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
for place in run tmp dev; do mount -t tmpfs "$place" "$root/$place"; done
chmod 1777 "$root/tmp"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir -p "$root/dev/shm" "$root/dev/pts" "$root/srv/shared"
mount -t tmpfs shm "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 pts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount --bind "$shared" "$root/srv/shared"
while [ $# -gt 0 ]; do
    mkdir -p "$root/srv/$2"
    mount --bind "$1" "$root/srv/$2"
    mount -o remount,bind,ro "$root/srv/$2"
    shift 2
done

# What a host has and a test needs not: it would only fail here, or take time.
for unit in systemd-udevd.service systemd-udev-trigger.service systemd-modules-load.service \
    systemd-networkd.service systemd-resolved.service systemd-timesyncd.service console-getty.service \
    systemd-networkd-wait-online.service systemd-hwdb-update.service ldconfig.service; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
echo 6d616368696e65206f6620612074657374 | cut -c1-32 > "$root/etc/machine-id"
ip link set lo up

# Not chroot alone: the kernel makes no user namespace for who lives in one.
cd "$root"
mkdir -p old
pivot_root . old
umount -l old
export container=other
exec chroot . /lib/systemd/systemd --system --unit=basic.target --show-status=no \
    --log-target=journal
