package postgres

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// An account is the user of the server's processes, because PostgreSQL
// refuses to run as root.
type account struct {
	name     string
	uid, gid uint32
	switched bool // the caller is root, the server is not
}

// serverUsers are the users for root's servers; the first that exists is used.
var serverUsers = []string{"postgres", "nobody"}

func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	for _, name := range serverUsers {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil && uid != 0 {
			return account{name, uint32(uid), uint32(gid), true}, nil
		}
	}
	return account{}, fmt.Errorf("PostgreSQL refuses to run as root, and there is none of the users %v to run it as: run as an ordinary user", serverUsers)
}

// command returns a program that runs as the account, in dir, outside
// the caller's terminal session: Ctrl-C must reach only the caller, who
// stops the server after use.
func (a account) command(ctx context.Context, dir, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if a.switched {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid, Groups: []uint32{}}
	}
	return cmd
}

// own creates a directory, private to the account.
func (a account) own(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return a.chown(dir)
}

// chown makes the account the owner of a file or directory.
func (a account) chown(path string) error {
	if !a.switched {
		return nil
	}
	return os.Chown(path, int(a.uid), int(a.gid))
}

// chownAll does so for a whole tree.
func (a account) chownAll(root string) error {
	return filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !a.switched {
			return err
		}
		return os.Lchown(path, int(a.uid), int(a.gid))
	})
}

// canWrite reports whether the account can work in dir: all its parents
// must allow it.
func (a account) canWrite(dir string) bool {
	if !a.switched {
		return true
	}
	return a.command(context.Background(), dir, "/bin/sh", "-c", "test -w .").Run() == nil
}
