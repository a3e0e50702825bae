package kafkatest

import (
	"context"
	"net"
	"strconv"

	"github.com/weirlog/weir/shared/testenv/apache"
	"github.com/weirlog/weir/shared/testenv/fault"
	"github.com/weirlog/weir/shared/testenv/internal/docker"
	"github.com/weirlog/weir/shared/testenv/port"
)

// containerNode is a one-node Kafka in a container.
func containerNode() (nodeSet, error) {
	port, err := port.Free()
	if err != nil {
		return nodeSet{}, err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	p, err := docker.Run(apache.Image(), 9092, port, apache.ContainerSettings(port), func(ctx context.Context) error { return ping(ctx, address) })
	if err != nil {
		return nodeSet{}, err
	}
	return nodeSet{[]string{address}, []fault.Process{p}, p.Remove}, nil
}
