package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weirlog/weir/deploy/acls"
	"github.com/weirlog/weir/shared/bus/cluster"
)

// tightRate is the quota in bytes/s below which a broker holds back what a
// small installation sends.
const tightRate = 1 << 20

// quotas reports what brokers allow the users of services to send and read.
func (c *brokerChecker) quotas(ctx context.Context) {
	c.look(ctx, "quota", "all", "Look at the brokers' logs.", func(ctx context.Context) error {
		found, err := cluster.Quotas(ctx, c.brokers, c.dialer)
		if errors.Is(err, cluster.ErrQuotasUnseen) {
			c.report.add(OK, "quota", "all", err.Error(), "") // a service's user need not see them
			return nil
		}
		for _, q := range found {
			c.quota(q)
		}
		return err
	})
}

// quota reports a quota of bytes that holds for a user of Weir.
func (c *brokerChecker) quota(q cluster.Quota) {
	user, ofUser := q.Of["user"]
	if ofUser && user != "" && user != c.signIn.User && !slices.Contains(acls.Programs(), user) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(q.Rates)) {
		rate := q.Rates[name]
		if !strings.HasSuffix(name, "_byte_rate") {
			continue
		}
		level := Warn
		if rate < tightRate {
			level = Fail
		}
		c.report.add(level, "quota", quotaSubject(q), fmt.Sprintf("%s is %.0f: each broker holds back what is beyond so many bytes a second", name, rate),
			fmt.Sprintf("Remove or raise it: kafka-configs.sh --alter%s --delete-config %s.", quotaEntity(q), name))
	}
}

// quotaSubject names whom a quota holds for.
func quotaSubject(q cluster.Quota) string {
	var of []string
	for _, kind := range slices.Sorted(maps.Keys(q.Of)) {
		name := "each " + kind
		if q.Of[kind] != "" {
			name = kind + " " + q.Of[kind]
		}
		of = append(of, name)
	}
	return strings.Join(of, ", ")
}

// quotaEntity names them in arguments of Kafka's tool.
func quotaEntity(q cluster.Quota) (arguments string) {
	for _, kind := range slices.Sorted(maps.Keys(q.Of)) {
		name := "--entity-default"
		if q.Of[kind] != "" {
			name = "--entity-name " + strconv.Quote(q.Of[kind])
		}
		arguments += " --entity-type " + strings.TrimSuffix(kind, "-id") + "s " + name
	}
	return arguments
}
