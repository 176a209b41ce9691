"""Operations that the gateway answers itself: the rules, models and handlers of each family."""
