"""Operations that the gateway answers itself: of each family the rules, the models and the handlers."""
