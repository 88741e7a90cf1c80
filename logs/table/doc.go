// Package table finds the tables of torch.cuda.memory_summary() in a text. In go the lines of
// logs/text; out come [Series]: the tables of each process and device, in their order.
package table
