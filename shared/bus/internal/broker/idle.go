package broker

import (
	"context"
	"sync"
	"time"

	kafka "github.com/segmentio/kafka-go"
)

// idleTime is how long a connection waits for the next question of anyone
// with the same dialer. Watchers ask every few seconds, and a connection
// for each question costs a broker more than the answer. Brokers close
// idle ones after minutes.
const (
	idleTime = 20 * time.Second
	maxIdle  = 4 // of a dialer to a broker
)

type idleKey struct {
	dialer  *kafka.Dialer
	address string
}

type idleConnection struct {
	*Connection

	expiry *time.Timer
}

// idleConnections is a process's pool.
type idleConnections struct {
	mu  sync.Mutex
	all map[idleKey][]idleConnection // bounded by maxIdle, the dialers and the brokers
}

var idle = idleConnections{all: map[idleKey][]idleConnection{}}

// On asks a broker over a connection that is idle or new, again over a new
// one if an idle one fails. The connection is for ask alone until it returns.
func (c *Cluster) On(ctx context.Context, address string, ask func(*Connection) error) error {
	key := idleKey{c.Dialer, address}
	if conn := idle.take(key); conn != nil {
		if err := idle.use(key, conn, ask); err == nil || ctx.Err() != nil {
			return err
		}
	}
	conn, err := Connect(ctx, c.Dialer, address)
	if err != nil {
		return err
	}
	return idle.use(key, conn, ask)
}

func (i *idleConnections) use(key idleKey, conn *Connection, ask func(*Connection) error) error {
	err := ask(conn)
	if err != nil || !i.keep(key, conn) {
		_ = conn.Close()
	}
	return err
}

// take returns the connection that was used last; nil: there is none.
func (i *idleConnections) take(key idleKey) *Connection {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := len(i.all[key])
	if n == 0 {
		return nil
	}
	last := i.all[key][n-1]
	i.set(key, i.all[key][:n-1])
	last.expiry.Stop()
	return last.Connection
}

func (i *idleConnections) keep(key idleKey, conn *Connection) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.all[key]) == maxIdle {
		return false
	}
	i.all[key] = append(i.all[key], idleConnection{conn, time.AfterFunc(idleTime, func() { i.expire(key, conn) })})
	return true
}

func (i *idleConnections) expire(key idleKey, conn *Connection) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n, one := range i.all[key] {
		if one.Connection == conn { // else somebody has taken it
			i.set(key, append(i.all[key][:n:n], i.all[key][n+1:]...))
			_ = conn.Close()
			return
		}
	}
}

func (i *idleConnections) set(key idleKey, left []idleConnection) {
	if len(left) == 0 {
		delete(i.all, key)
		return
	}
	i.all[key] = left
}
