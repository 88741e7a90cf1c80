package export

import (
	"context"
	"database/sql"
	"strings"
)

// perStatement is how many rows a statement inserts: a call of the database
// costs more than a row.
const perStatement = 64

// An inserter adds rows to a table, many by each prepared statement.
type inserter struct {
	ctx     context.Context
	tx      *sql.Tx
	table   string
	columns int
	many    *sql.Stmt
	args    []any
	err     error
}

func newInserter(ctx context.Context, tx *sql.Tx, table string, columns int) (*inserter, error) {
	in := &inserter{ctx: ctx, tx: tx, table: table, columns: columns, args: make([]any, 0, columns*perStatement)}
	var err error
	in.many, err = in.prepare(perStatement)
	return in, err
}

// prepare makes the statement that inserts n rows.
func (in *inserter) prepare(n int) (*sql.Stmt, error) {
	row := "(?" + strings.Repeat(",?", in.columns-1) + ")"
	return in.tx.PrepareContext(in.ctx, "insert into "+in.table+" values "+row+strings.Repeat(","+row, n-1))
}

func (in *inserter) add(values ...any) {
	if in.err != nil {
		return
	}
	in.args = append(in.args, values...)
	if len(in.args) == cap(in.args) {
		_, in.err = in.many.ExecContext(in.ctx, in.args...)
		in.args = in.args[:0]
	}
}

// close writes the remaining rows, and returns the first error.
func (in *inserter) close() error {
	defer in.many.Close()
	if in.err != nil || len(in.args) == 0 {
		return in.err
	}
	rest, err := in.prepare(len(in.args) / in.columns)
	if err != nil {
		return err
	}
	defer rest.Close()
	_, err = rest.ExecContext(in.ctx, in.args...)
	return err
}
