package clickhouse

import (
	"bufio"
	"context"
	"fmt"
)

// Optimize merges all parts of each partition into one, which takes long.
func (s *Store) Optimize(ctx context.Context) error {
	return s.writer.exec(ctx, `OPTIMIZE TABLE entries FINAL`, nil, nil)
}

// A Size is what a column or an index takes.
type Size struct {
	Of    string
	Bytes int64
}

// Sizes returns what takes most on disk.
func (s *Store) Sizes(ctx context.Context) (sizes []Size, err error) {
	const of = `SELECT name, toInt64(data_compressed_bytes + marks_bytes) AS bytes FROM system.%s WHERE database = currentDatabase() AND table = 'entries'`
	query := `SELECT name, bytes FROM (` + fmt.Sprintf(of, "columns") + ` UNION ALL ` + fmt.Sprintf(of, "data_skipping_indices") +
		`) WHERE bytes > 0 ORDER BY bytes DESC FORMAT TabSeparated`
	answer, err := s.writer.run(ctx, everyone, query, nil, nil)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	for lines := bufio.NewScanner(answer); lines.Scan(); {
		var size Size
		if _, err := fmt.Sscan(lines.Text(), &size.Of, &size.Bytes); err != nil {
			return nil, err
		}
		sizes = append(sizes, size)
	}
	return sizes, nil
}
