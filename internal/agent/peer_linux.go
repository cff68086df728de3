package agent

import (
	"context"
	"fmt"
	"net"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"
)

type peerKey struct{}

// withPeer notes who is at the other end of a connection to the control socket, as the kernel
// has it.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return ctx
	}
	name := ""
	_ = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			name = userName(cred.Uid)
		}
	})
	return context.WithValue(ctx, peerKey{}, name)
}

func userName(uid uint32) string {
	if u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10)); err == nil {
		return u.Username
	}
	return fmt.Sprintf("uid %d", uid)
}

// who is the user at the other end.
func who(ctx context.Context) string {
	if name, _ := ctx.Value(peerKey{}).(string); name != "" {
		return name
	}
	return "unknown"
}
