package redis_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv/redis"
)

// A client sends a server lines, as people do.
type client struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// serve opens a folder's server at a time, and returns a client. An
// unused server is as good as a dead one.
func serve(t *testing.T, dir string, now *time.Time) func() client {
	t.Helper()
	s, err := redis.Open(dir, func() time.Time { return *now })
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go s.Serve(ln)
	return func() client {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return client{t, conn, bufio.NewReader(conn)}
	}
}

// says sends each command and compares the answer's lines, which
// follow an arrow: _ is any.
func (c client) says(dialogue string) {
	c.t.Helper()
	for line := range strings.Lines(strings.TrimSpace(dialogue)) {
		command, want, _ := strings.Cut(strings.TrimSpace(line), " → ")
		fmt.Fprintf(c.conn, "%s\r\n", command)
		for _, w := range strings.Fields(want) {
			got, err := c.in.ReadString('\n')
			if err != nil {
				c.t.Fatalf("%s: %v", command, err)
			}
			if got = strings.TrimSpace(got); w != "_" && got != w && !strings.HasPrefix(got, w+" ") {
				c.t.Errorf("%s: answered %q, want %q", command, got, w)
			}
		}
	}
}

func TestKeptThroughDeath(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	connect := serve(t, dir, &now)
	first, second := connect(), connect()
	first.says(`SELECT 3 → +OK
		SET string 1 → +OK
		EXPIRE string 60 → :1
		RPUSH list a b → :2
		HSET hash f v → :1
		SADD set a b c d e f → :6
		EVAL return(redis.call('incr',KEYS[1])) 1 scripted → :1
		MULTI → +OK
		INCR counted → +QUEUED`)
	second.says(`SET string other → +OK
		SELECT 3 → +OK
		INCR counted → :1`)
	first.says(`EXEC → *1 :2
		SPOP set 5 → *5 _ _ _ _ _ _ _ _ _ _
		MULTI → +OK
		SET never 1 → +QUEUED`)

	now = now.Add(30 * time.Second)
	again := serve(t, dir, &now)()
	again.says(`GET string → $5 other
		SELECT 3 → +OK
		GET string → $1 1
		TTL string → :30
		LRANGE list 0 -1 → *2 $1 a $1 b
		HGET hash f → $1 v
		GET scripted → $1 1
		GET counted → $1 2
		SCARD set → :1
		EXISTS never → :0`)
	now = now.Add(31 * time.Second)
	again.says(`EXISTS string → :0`)
}

// Random choices are repeated.
func TestLotsAreKept(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	c := serve(t, dir, &now)()
	c.says(`SADD set a b c d e f g h → :8
		SRANDMEMBER set → $1 _
		SPOP set → $1`)
	gone, err := c.in.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	serve(t, dir, &now)().says(`SISMEMBER set ` + strings.TrimSpace(gone) + ` → :0
		SCARD set → :7`)
}

// A process that was killed while writing has not answered.
func TestUnfinishedEntryIsForgotten(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	serve(t, dir, &now)().says(`SET a 1 → +OK
		SET b 2 → +OK`)
	path := filepath.Join(dir, "journal")
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, kept[:len(kept)-10], 0o600); err != nil {
		t.Fatal(err)
	}
	serve(t, dir, &now)().says(`EXISTS a b → :1
		SET c 3 → +OK`)
	serve(t, dir, &now)().says(`EXISTS a b c → :2`)
}

// A command that waits for another client would block all.
func TestBlockingCommandsAreRefused(t *testing.T) {
	now := time.Now()
	serve(t, t.TempDir(), &now)().says(`BLPOP list 0 → -ERR
		XREAD BLOCK 0 STREAMS s $ → -ERR
		XADD s * f v → $15`)
}
