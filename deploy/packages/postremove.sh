#!/bin/sh
set -e

if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
fi
# Only dpkg can purge: rpm keeps changed files of /etc/jmxlake.
if [ "$1" = purge ]; then
    rm -rf /etc/jmxlake
fi
# The spool contains data that the lake does not have yet, and a lake can be next to it.
case "$1" in
    purge | 0)
        if [ -d /var/lib/jmxlake ]; then
            echo "jmxlake: /var/lib/jmxlake and the user jmxlake stay; remove them if nobody needs them" >&2
        fi
        ;;
esac
