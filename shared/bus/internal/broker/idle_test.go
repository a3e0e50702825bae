package broker_test

import (
	"context"
	"net"
	"os"
	"sync"
	"testing"

	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

func TestMain(m *testing.M) { os.Exit(bustest.Main(m)) }

// Questions with one dialer share a connection, whoever asks, and go over
// another one where the broker has closed it.
func TestQuestionsShareAConnection(t *testing.T) {
	brokers, topic := kafkatest.Shared(t), "test.broker.idle"
	bustest.Ensure(t, brokers, topic, 1, nil)
	var mu sync.Mutex
	var dialed []net.Conn
	dialer := &kafka.Dialer{DialFunc: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		mu.Lock()
		defer mu.Unlock()
		dialed = append(dialed, conn)
		return conn, err
	}}
	ask := func() {
		for range 3 {
			_, err := broker.NewCluster(brokers, dialer).AllLogs(t.Context(), topic, []int{0})
			testenv.Must(t, err)
		}
	}
	ask()
	most := len(dialed) // one for the address that is given, one for that of the leader
	if most > 2 {
		t.Errorf("%d connections for three questions one after the other", most)
	}
	for _, conn := range dialed {
		testenv.Must(t, conn.Close())
	}
	if ask(); len(dialed) > 2*most {
		t.Errorf("%d connections after they were closed", len(dialed)-most)
	}
}
