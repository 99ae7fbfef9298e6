/* A total of orders that follows a pointer into nowhere. */
#include <stdio.h>

struct order {
  int quantity;
  int price;
  struct order *next;
};

static int total_of(const struct order *order) {
  int total = 0;
  for (; order; order = order->next)
    total += order->quantity * order->price;
  return total;
}

int main(void) {
  struct order last = {3, 7, (struct order *)0x10};
  struct order first = {1, 5, &last};
  printf("total %d\n", total_of(&first));
  return 0;
}
