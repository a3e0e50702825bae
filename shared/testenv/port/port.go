package port

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/weirlog/weir/shared/filelock"
	"github.com/weirlog/weir/shared/testenv"
)

// Reserved ports lie below those that Linux and macOS give to outgoing
// connections and to listeners on port 0: no other program gets one
// while its server is dead or not yet started.
const (
	first = 20_000
	last  = 29_999
)

const tries = 100

// Free reserves a port of 127.0.0.1 on which nothing listens. No other
// test gets it, in this process or another, before this process ends.
func Free() (int, error) {
	var err error
	for range tries {
		port := first + rand.N(last-first+1)
		if err = take(port); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port from %d to %d in %d tries: %w", first, last, tries, err)
}

func take(port int) error {
	held, err := filelock.Try(filepath.Join(testenv.Common, fmt.Sprintf("weir-test-port-%d", port)))
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return errors.Join(err, held.Close())
	}
	lent.add(held)
	return ln.Close()
}

// lent are the files of the reserved ports: the collector closes a file
// without a reference, which would release the port.
var lent files

type files struct {
	mu   sync.Mutex
	open []*filelock.Lock
}

func (f *files) add(file *filelock.Lock) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = append(f.open, file)
}
