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
	borrowed bool // the caller is root, the server is not
}

// lenders are the users for root's servers; the first that exists is used.
var lenders = []string{"postgres", "nobody"}

func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	for _, name := range lenders {
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
	return account{}, fmt.Errorf("PostgreSQL refuses to run as root, and there is none of the users %v to run it as: run as an ordinary user", lenders)
}

// command returns a program that runs as the account, in dir, outside
// the caller's terminal session: Ctrl-C must reach only the caller, who
// stops the server after use.
func (a account) command(ctx context.Context, dir, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if a.borrowed {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid, Groups: []uint32{}}
	}
	return cmd
}

// own creates a directory, private to the account.
func (a account) own(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return a.give(dir)
}

// give makes the account the owner of a file or directory.
func (a account) give(path string) error {
	if !a.borrowed {
		return nil
	}
	return os.Chown(path, int(a.uid), int(a.gid))
}

// giveAll does so for a whole tree.
func (a account) giveAll(root string) error {
	return filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !a.borrowed {
			return err
		}
		return os.Lchown(path, int(a.uid), int(a.gid))
	})
}

// reaches reports whether the account can work in dir: all its parents
// must allow it.
func (a account) reaches(dir string) bool {
	if !a.borrowed {
		return true
	}
	return a.command(context.Background(), dir, "/bin/sh", "-c", "test -w .").Run() == nil
}
